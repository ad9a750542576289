//! Copies through the memory of a GPU, on a driver that is faked: what comes out, and what is left where it fails.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::support::{data, folder_with, kvik, kvik_with_gpu, names, object};

#[test]
fn a_copy_through_a_gpu_has_the_same_bytes_for_every_size_and_says_that_it_was_verified() {
    for len in [0, 1, 4096, 4097, (3 << 20) + 17] {
        let (folder, source, bytes) = folder_with(len);
        let copy = folder.path().join("b");
        let mut command = kvik_with_gpu();
        command
            .args(["--json", "copy", "--via-gpu", "--task-size", "1MiB"])
            .args([&source, &copy]);
        let run = command.assert().success();
        let report = object(&run.get_output().stdout);
        assert!(fs::read(&copy).unwrap() == bytes, "{len} bytes");
        assert_eq!(report["device"], 0);
        assert_eq!(report["verified"], true);
        assert_eq!(report["bytes"], len);
        assert_eq!(names(folder.path()), ["a", "b"]);
    }
}

#[test]
fn the_second_gpu_is_named_by_its_number_and_the_text_says_which() {
    let (folder, source, bytes) = folder_with(1 << 20);
    let copy = folder.path().join("b");
    let mut command = kvik_with_gpu();
    command.args(["copy", "--via-gpu=1"]).args([&source, &copy]);
    let run = command.assert().success();
    let text = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(
        text.contains("through GPU 1") && text.contains("verified"),
        "{text}"
    );
    assert!(fs::read(&copy).unwrap() == bytes);
}

#[test]
fn holes_stay_holes_on_the_way_through_a_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let (source, copy) = (folder.path().join("a"), folder.path().join("b"));
    let file = fs::File::create(&source).unwrap();
    file.set_len(16 << 20).unwrap();
    let piece = data(70_000);
    std::os::unix::fs::FileExt::write_all_at(&file, &piece, 9 << 20).unwrap();
    file.sync_all().unwrap();
    let mut command = kvik_with_gpu();
    command.args(["copy", "--via-gpu"]).args([&source, &copy]);
    command.assert().success();
    assert!(fs::read(&copy).unwrap() == fs::read(&source).unwrap());
    assert!(fs::metadata(&copy).unwrap().blocks() * 512 < 1 << 20);
}

#[test]
fn without_a_driver_a_copy_through_a_gpu_is_refused_and_leaves_everything_as_it_was() {
    let (folder, source, _) = folder_with(1 << 20);
    let copy = folder.path().join("b");
    fs::write(&copy, b"old").unwrap();
    let mut command = kvik();
    command
        .env("KVIK_CUDA_LIBRARY", folder.path().join("missing.so"))
        .args(["copy", "--via-gpu"])
        .args([&source, &copy]);
    let run = command.assert().code(7);
    let text = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(text.contains("missing.so"), "{text}");
    assert_eq!(fs::read(&copy).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["a", "b"]);
}

#[test]
fn a_gpu_that_is_not_there_is_an_error_that_names_it_and_leaves_nothing() {
    let (folder, source, _) = folder_with(1 << 20);
    let mut command = kvik_with_gpu();
    command
        .args(["copy", "--via-gpu=9"])
        .args([&source, &folder.path().join("b")]);
    let run = command.assert().code(7);
    let text = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(text.contains("GPU 9"), "{text}");
    assert_eq!(names(folder.path()), ["a"]);
}

#[test]
fn a_gpu_that_fails_in_the_middle_ends_the_copy_and_leaves_nothing() {
    let (folder, source, _) = folder_with(8 << 20);
    let mut command = kvik_with_gpu();
    command
        .env("FAKE_CUDA_FAIL", "cuMemcpyHtoDAsync_v2:3:700")
        .args(["copy", "--via-gpu", "--task-size", "1MiB"])
        .args([&source, &folder.path().join("b")]);
    let run = command.assert().code(1);
    let text = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(text.contains("700"), "{text}");
    assert_eq!(names(folder.path()), ["a"]);
}

#[test]
fn a_wrong_number_is_an_error_of_the_command_line() {
    for number in ["-1", "x"] {
        let mut command = kvik();
        let flag = format!("--via-gpu={number}");
        command.args(["copy", &flag, "a", "b"]).assert().code(2);
    }
}
