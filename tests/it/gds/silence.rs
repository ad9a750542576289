//! Bytes that cuFile does not move and does not miss. What once could break: a read that passes for one that met the end of the
//! file, short of bytes that are there.

use kvik::config::{Config, Layer};
use kvik::{ByteSize, CompatMode, ErrorKind, FileHandle, driver, stats};
use kvik_tests::gpu::{Kind, Memory};
use kvik_tests::pattern::{UNTOUCHED, assert_same, file, pattern};

use super::{assert_at_rest, open as open_off, start};

const LEN: usize = 40_000;

#[test]
fn a_read_of_nothing_before_the_end_of_the_file_is_an_error_and_staged_under_auto() {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(Ok("the test shows one"));
    cufile.set_direct(true);
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    for nth in 1..=LEN.div_ceil(4096) {
        let settings = Layer::new()
            .num_threads(2)
            .task_size(ByteSize::new(4096))
            .gds_threshold(ByteSize::new(0));
        let auto = FileHandle::options()
            .read(true)
            .compat(CompatMode::Auto)
            .open_with(&path, &Config::resolve([settings]).unwrap())
            .unwrap();
        let before = stats::names::FALLBACKS_OF_CUFILE.get();
        cufile.rules(&format!("cuFileRead:{nth}+:zero"));
        memory.set(UNTOUCHED);
        assert_eq!(auto.read_at(memory.target(0..LEN), 0).unwrap(), LEN);
        assert_same(&memory.bytes(), &pattern(1, 0, LEN));
        assert_eq!(stats::names::FALLBACKS_OF_CUFILE.get(), before + 1);
        cufile.succeed();

        let off = open_off(&path, 1, 4096);
        cufile.rules(&format!("cuFileRead:{nth}:zero"));
        let error = off.read_at(memory.target(0..LEN), 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert_eq!(error.done() as usize, (nth - 1) * 4096, "{error}");
        assert!(
            error.to_string().contains("4096 bytes") || nth == 10,
            "{error}"
        );
        cufile.succeed();
        drop((auto, off));
        while cufile.files() > 0 {
            std::thread::yield_now();
        }
    }
    assert_at_rest(&cuda, &cufile);
}
