//! The examples for a shell in README and book, run as they stand.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::binary;

/// The examples of a page that are marked `sh`.
fn examples(page: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(root.join(page)).unwrap();
    let parts = text.split("\n```sh\n").skip(1);
    parts
        .map(|part| part.split("\n```").next().unwrap().to_owned())
        .collect()
}

/// Runs an example in an empty folder, with `kvik` where a shell looks for it.
fn run(example: &str, folder: &Path) -> Output {
    let bin = binary().parent().unwrap().to_str().unwrap();
    // If it fails on the way, its server must not stay.
    let whole = format!("trap 'kill $! || :' EXIT\n{example}");
    let output = Command::new("sh")
        .args(["-e", "-u", "-c", &whole])
        .current_dir(folder)
        .env_clear()
        .env("PATH", format!("{bin}:/usr/local/bin:/usr/bin:/bin"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{example}\n{said}");
    output
}

#[test]
fn the_readmes_example_without_a_network_runs_as_it_stands() {
    let examples = examples("README.md");
    assert_eq!(examples.len(), 1);
    let folder = tempfile::tempdir().unwrap();
    let output = run(&examples[0], folder.path());
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let source = read("served/data.bin");
    assert_eq!(source.len(), 20_000_000);
    assert!(read("copy.bin") == source);
    assert!(read("part.bin") == source[1 << 20..(1 << 20) + (64 << 10)]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("HTTP"), "{shown}");
}

#[test]
fn the_quick_starts_example_with_a_server_runs_as_it_stands() {
    let examples = examples("docs/src/quick-start.md");
    assert_eq!(examples.len(), 1);
    let folder = tempfile::tempdir().unwrap();
    run(&examples[0], folder.path());
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let source = read("data.bin");
    assert!(read("copy.bin") == source);
    assert_eq!(read("first.bin"), source[..16]);
}
