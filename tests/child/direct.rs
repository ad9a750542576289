//! Handles that go past the page cache, on file systems that will not have it.

use kvik::{EngineKind, EnginePreference, FileHandle};
use kvik_tests::pattern::{assert_same, pattern};

use crate::transfers::report;

/// `direct-open PATH`: opened as the settings say, and by the engine alone; what came of it is printed.
pub(crate) fn open(args: &[String]) {
    let [path] = args else { panic!("a path") };
    let only = EnginePreference::Only(EngineKind::Direct);
    for engine in [EnginePreference::Auto, only] {
        let opened = FileHandle::options().read(true).engine(engine).open(path);
        report(opened.and_then(|file| file.read_at(&mut [0; 10], 0)));
    }
}

/// `direct-clones PATH`: what one clone of a handle learns, the others know.
pub(crate) fn clones(args: &[String]) {
    let [path] = args else { panic!("a path") };
    let file = FileHandle::open(path).unwrap();
    let clone = file.clone();
    let len = file.len().unwrap() as usize;
    let truth = pattern(1, 0, len);
    for handle in [&file, &clone, &file] {
        let mut target = vec![0; len];
        report(handle.read_at(&mut target, 0));
        assert_same(&target, &truth);
    }
    drop(file);
    let (outcome, target) = clone.submit_read(vec![0; len], 0).finish();
    report(outcome);
    assert_same(&target, &truth);
}
