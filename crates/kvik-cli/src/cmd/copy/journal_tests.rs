//! What a crash leaves of a journal, and what is no journal of this copy.

use super::*;

fn subject() -> Subject {
    let text = r#"{"format":1,"url":"ab","version":"a","size":100}"#;
    serde_json::from_str(text).unwrap()
}

fn written(range: Range<u64>) -> Written {
    let checksum = 0xdead_beef;
    Written { range, checksum }
}

/// A journal of these pieces, and its path.
fn kept(pieces: &[Written]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.kvik-journal");
    let mut journal = Journal::create(&path, &subject()).unwrap();
    journal.note(pieces).unwrap();
    journal.keep();
    (folder, path)
}

#[test]
fn a_journal_tells_what_it_was_told_and_can_be_gone_on_with() {
    let (_folder, path) = kept(&[written(40..60), written(0..20)]);
    let (mut journal, found) = Journal::take_up(&path, &subject()).unwrap().unwrap();
    assert_eq!(found, [written(0..20), written(40..60)]);
    journal.note(&[written(20..40)]).unwrap();
    journal.keep();
    let (journal, found) = Journal::take_up(&path, &subject()).unwrap().unwrap();
    assert_eq!(found, [written(0..20), written(20..40), written(40..60)]);
    drop(journal);
    assert!(!path.exists());
}

#[test]
fn what_a_crash_leaves_is_believed_up_to_the_last_whole_line() {
    let (_folder, path) = kept(&[written(0..20), written(20..40)]);
    let whole = fs::read(&path).unwrap();
    let ends: Vec<usize> = (0..whole.len())
        .filter(|at| whole[*at] == b'\n')
        .map(|at| at + 1)
        .collect();
    assert_eq!(ends.len(), 3);
    for cut in 0..=whole.len() {
        let lines = ends.iter().filter(|end| **end <= cut).count();
        // A crash cuts, or leaves zeros where there was to be a text.
        let mut zeros = whole[..cut].to_vec();
        zeros.resize(whole.len(), 0);
        for left in [&whole[..cut], &zeros] {
            let parsed = parse(left);
            let Some((found, pieces, end)) = parsed else {
                assert_eq!(lines, 0, "{cut}");
                continue;
            };
            assert_eq!(found, subject());
            assert_eq!((pieces.len(), end), (lines - 1, ends[lines - 1]), "{cut}");
        }
        // What comes next stands behind the last whole line.
        if lines > 0 {
            fs::write(&path, &zeros).unwrap();
            let (mut journal, _) = Journal::take_up(&path, &subject()).unwrap().unwrap();
            journal.note(&[written(90..100)]).unwrap();
            journal.keep();
            let (journal, found) = Journal::take_up(&path, &subject()).unwrap().unwrap();
            assert_eq!(found.len(), lines, "{cut}");
            assert_eq!(found.last(), Some(&written(90..100)));
            journal.keep();
        }
    }
}

#[test]
fn one_changed_byte_ends_it_there() {
    let (_folder, path) = kept(&[written(0..20), written(20..40)]);
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        let line = whole[..at].iter().filter(|byte| **byte == b'\n').count();
        // Letters of a checksum mean the same in either case, and this flip keeps the case.
        match parse(&changed) {
            None => assert_eq!(line, 0, "{at}"),
            Some((_, pieces, _)) => assert_eq!(pieces.len(), line - 1, "{at}"),
        }
    }
}

#[test]
fn pieces_that_cannot_be_make_it_useless() {
    for text in [
        "0 20 1", "10 30 1", "90 101 1", "5 5 1", "7 5 1", "0 20", "0 20 1 1", "a b c",
    ] {
        let (_folder, path) = kept(&[written(0..20)]);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(line(text).as_bytes()).unwrap();
        let why = Journal::take_up(&path, &subject()).unwrap().unwrap_err();
        assert!(why.contains("cannot be read"), "{text}: {why}");
    }
}

#[test]
fn a_journal_of_something_else_is_refused_with_what_differs() {
    let (_folder, path) = kept(&[]);
    for (text, why) in [
        (
            r#"{"format":1,"url":"cd","version":"a","size":100}"#,
            "another URL",
        ),
        (
            r#"{"format":1,"url":"ab","version":"b","size":100}"#,
            "has changed",
        ),
        (
            r#"{"format":1,"url":"ab","version":"a","size":101}"#,
            "has changed",
        ),
        (
            r#"{"format":2,"url":"ab","version":"a","size":100}"#,
            "another version",
        ),
    ] {
        let other = serde_json::from_str(text).unwrap();
        let said = Journal::take_up(&path, &other).unwrap().unwrap_err();
        assert!(said.contains(why), "{text}: {said}");
    }
}

#[test]
fn a_journal_that_others_could_write_to_is_not_believed() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = kept(&[]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
    let why = Journal::take_up(&path, &subject()).unwrap().unwrap_err();
    assert!(why.contains("others"), "{why}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    Journal::take_up(&link, &subject()).unwrap_err();
    fs::hard_link(&path, folder.path().join("hard")).unwrap();
    Journal::take_up(&path, &subject()).unwrap().unwrap_err();
}

#[test]
fn only_what_kvik_made_is_removed_as_a_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.kvik-journal");
    assert!(!is_left(&path).unwrap());
    let (_folder, made) = kept(&[written(0..20)]);
    let whole = fs::read(made).unwrap();
    let header = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for ours in [&b""[..], &[0; 300], &whole, &whole[..header + 3]] {
        fs::write(&path, ours).unwrap();
        remove_left(&path).unwrap();
        assert!(!path.exists());
    }
    let diary = b"a diary\n".repeat(1000);
    for foreign in [&diary, &whole[..header - 1], &whole[1..], &[0; 5000]] {
        fs::write(&path, foreign).unwrap();
        let failure = remove_left(&path).unwrap_err();
        assert!(failure.message().contains("no journal of kvik's"));
        assert_eq!(fs::read(&path).unwrap(), foreign);
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    remove_left(&path).unwrap_err();
    assert!(path.is_dir());
}

#[test]
fn a_journal_whose_name_another_file_has_by_now_removes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.kvik-journal");
    let journal = Journal::create(&path, &subject()).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, "of somebody else").unwrap();
    drop(journal);
    assert_eq!(fs::read(&path).unwrap(), b"of somebody else");
}
