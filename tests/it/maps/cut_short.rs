//! A file that is cut short under its map. In child processes: what was wrong ended the process.

use std::fs;

use kvik_tests::fake;

use crate::{child, says};

/// python/cpython#148650, BLAKE3-team/BLAKE3#488, yhirose/cpp-httplib#1930: the reader dies by SIGBUS.
#[test]
fn m1_a_map_of_a_file_that_was_cut_short_is_an_error_and_the_process_lives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source");
    fs::write(&path, vec![7; 8 << 20]).unwrap();
    let said = child("map-cut-short")
        .arg(&path)
        .env("KVIK_CUDA_LIBRARY", fake::cuda())
        .succeeds();
    says(
        &said,
        &[
            "host: Changed",
            "device: Changed",
            "list: Changed",
            "what is left: 4096",
            "within the last page: Changed",
        ],
    );
}
