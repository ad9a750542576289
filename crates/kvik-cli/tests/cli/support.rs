//! What the tests share: a command in a clean environment, data, and folders.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// `kvik`, with nothing of the tester's settings.
pub(crate) fn kvik() -> Command {
    let mut command = Command::new(binary());
    command
        .env_clear()
        .timeout(std::time::Duration::from_secs(50));
    command
}

/// The fake driver that cargo has built beside this test.
fn driver() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let built = here.with_file_name("libcuda_fake.so");
    assert!(
        built.exists(),
        "{} is built with the tests",
        built.display()
    );
    built
}

/// `kvik` on a machine with two GPUs, which are faked.
pub(crate) fn kvik_with_gpu() -> Command {
    let mut command = kvik();
    command.env("KVIK_CUDA_LIBRARY", driver());
    command
}

/// `kvik` for the standard library's commands, which can change users and be stopped.
pub(crate) fn kvik_std() -> std::process::Command {
    let mut command = std::process::Command::new(binary());
    command.env_clear();
    command
}

/// Sends a process that has not been waited for this signal, by its short name.
pub(crate) fn send(signal: &str, child: &std::process::Child) {
    let sent = std::process::Command::new("sh")
        .args(["-c", &format!("kill -{signal} {}", child.id())])
        .status();
    assert!(sent.unwrap().success());
}

pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_kvik"))
}

/// Bytes without a short period, so that a piece in the wrong place is noticed.
pub(crate) fn data(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// A folder with a file `a` of so many bytes.
pub(crate) fn folder_with(len: usize) -> (TempDir, PathBuf, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let bytes = data(len);
    fs::write(&path, &bytes).unwrap();
    (folder, path, bytes)
}

/// The one JSON object that standard output consists of.
#[track_caller]
pub(crate) fn object(bytes: &[u8]) -> Value {
    let text = std::str::from_utf8(bytes).unwrap();
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(value.is_object(), "{text}");
    value
}

/// What the command prints with `--json` when all goes well. The places follow the words.
#[track_caller]
pub(crate) fn kvik_json<'a>(words: &[&str], places: impl IntoIterator<Item = &'a Path>) -> Value {
    let run = kvik().arg("--json").args(words).args(places).assert();
    object(&run.success().get_output().stdout)
}

/// A FIFO in this folder, called `fifo`.
pub(crate) fn fifo(folder: &Path) -> PathBuf {
    let path = folder.join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    path
}

/// `DST.kvik-part`.
pub(crate) fn part_of(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.kvik-part", path.display()))
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
