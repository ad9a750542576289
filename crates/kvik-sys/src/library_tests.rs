//! A library that uses functions of another without asking for it can be loaded once the other is there for all.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;

fn build(folder: &Path, name: &str, source: &str) -> PathBuf {
    let file = folder.join(format!("{name}.c"));
    std::fs::write(&file, source).expect("a file");
    let library = folder.join(format!("lib{name}.so"));
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&file)
        .status()
        .expect("`cc`, the C compiler that links Rust programs, has to be installed");
    assert!(status.success());
    library
}

fn load(candidates: &Candidates) -> Result<(), LoadError> {
    // SAFETY: the libraries of this test do nothing when they are loaded.
    unsafe {
        Library::first(candidates, |library| {
            library.symbol(c"user").map(|_| ()).ok_or(vec!["user"])
        })
    }
    .map(|_| ())
}

#[test]
fn a_library_that_forgets_to_ask_for_another_finds_it_where_it_is_opened_for_all() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let used = build(folder.path(), "used", "int kvik_used(void) { return 1; }");
    let user = build(
        folder.path(),
        "user",
        "int kvik_used(void); int user(void) { return kvik_used(); }",
    );
    let mut candidates = Candidates::only(&user);

    let error = load(&candidates).expect_err("nobody has `kvik_used`");
    let Some((_, Refusal::NotOpened(text))) = error.tried().next() else {
        panic!("{error}");
    };
    assert!(text.contains("undefined symbol: kvik_used"), "{text}");

    // A machine without it: the library itself says what it misses.
    candidates.global = Some("libkvik-nowhere.so.1");
    assert!(load(&candidates).is_err());

    candidates.global = Some(String::leak(used.display().to_string()));
    load(&candidates).expect("`kvik_used` is there for all");
}
