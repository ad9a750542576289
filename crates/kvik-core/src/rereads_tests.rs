//! What once could break: pieces that are cut otherwise than the last time, a data set that thrashes the cache for ever.

use super::*;

const FILE: FileId = FileId(1);
const TASK: u64 = 4 << 20;

fn table() -> Box<Rereads<4096>> {
    Box::new(Rereads::new())
}

#[test]
fn each_state_goes_on_by_the_way_that_is_taken() {
    use State::{Kept, Lost, Seen, Unseen};
    for (state, past, through) in [
        (Unseen, Seen, Kept),
        (Seen, Seen, Kept),
        (Kept, Lost, Lost),
        (Lost, Lost, Lost),
    ] {
        assert_eq!(
            (state.after(Way::Past), state.after(Way::Through)),
            (past, through)
        );
        assert_eq!(State::of_bits(0xfffc | state as u64), state);
    }
}

#[test]
fn first_past_the_cache_then_through_it_then_past_it_for_good() {
    let table = table();
    for expected in [Way::Past, Way::Through, Way::Past, Way::Past, Way::Past] {
        for task in 0..8 {
            let piece = task * TASK..(task + 1) * TASK;
            assert_eq!(
                table.next(FILE, &piece, Found::Missing),
                expected,
                "task {task}"
            );
        }
    }
    // Another file is another story.
    assert_eq!(table.next(FileId(2), &(0..TASK), Found::Missing), Way::Past);
    assert_eq!(
        table.next(FILE, &(8 * TASK..9 * TASK), Found::Missing),
        Way::Past
    );
}

#[test]
fn a_round_is_one_round_however_it_is_cut() {
    for (start, len) in [
        (0, GRAIN),
        (1, GRAIN),
        (GRAIN - 1, GRAIN),
        (4096, GRAIN + 1),
        (77, 3 * GRAIN / 2),
        (1000, TASK),
        (5, 1 << 20),
    ] {
        let table = table();
        for expected in [Way::Past, Way::Through, Way::Past] {
            let mut at = start;
            while at < start + 8 * TASK {
                let found = table.next(FILE, &(at..at + len), Found::Missing);
                assert_eq!(found, expected, "{len} at {at}");
                at += len;
            }
        }
    }
}

#[test]
fn a_piece_that_was_read_by_half_goes_through_and_one_that_was_touched_goes_past() {
    let table = table();
    assert_eq!(table.next(FILE, &(0..TASK / 2), Found::Missing), Way::Past);
    assert_eq!(table.next(FILE, &(0..TASK), Found::Missing), Way::Through);
    assert_eq!(
        table.next(FILE, &(TASK..TASK + GRAIN), Found::Missing),
        Way::Past
    );
    assert_eq!(
        table.next(FILE, &(TASK..2 * TASK), Found::Missing),
        Way::Past
    );
    assert_eq!(
        table.next(FILE, &(TASK..2 * TASK), Found::Missing),
        Way::Through
    );
}

/// Readahead brings most pieces before they are asked for.
#[test]
fn a_piece_that_is_found_cached_after_it_was_read_past_the_cache_had_its_second_time() {
    let table = table();
    assert_eq!(table.next(FILE, &(0..TASK), Found::Missing), Way::Past);
    table.found_cached(FILE, &(0..TASK));
    table.found_cached(FILE, &(TASK..2 * TASK));
    assert_eq!(table.next(FILE, &(0..TASK), Found::Missing), Way::Past);
    assert_eq!(table.state(FILE, 0), State::Lost);
    table.found_cached(FILE, &(0..TASK));
    assert_eq!(table.state(FILE, 0), State::Lost);
    assert_eq!(table.state(FILE, TASK / GRAIN), State::Unseen);
}

#[test]
fn a_piece_that_is_found_read_ahead_is_not_lost() {
    let table = table();
    let next = |found| table.next(FILE, &(0..TASK), found);
    assert_eq!(next(Found::ReadAhead), Way::Past);
    assert_eq!(next(Found::ReadAhead), Way::Through);
    assert_eq!(next(Found::ReadAhead), Way::Through);
    assert_eq!(next(Found::Missing), Way::Past);
    assert_eq!(next(Found::ReadAhead), Way::Past);
}

#[test]
fn pieces_at_the_largest_offset_have_their_way_too() {
    let end = i64::MAX as u64;
    assert_eq!(
        table().next(FILE, &(end - TASK..end), Found::Missing),
        Way::Past
    );
}

#[test]
fn of_five_grains_in_a_set_the_one_used_the_longest_ago_is_forgotten() {
    let mut word = 0;
    for tag in 0..4 {
        word = with(word, tag, State::Seen);
    }
    // Used again, and no entry more.
    word = with(word, 0, State::Kept);
    word = with(word, 4, State::Lost);
    let states = [0, 1, 2, 3, 4].map(|tag| state_in(word, tag));
    use State::{Kept, Lost, Seen, Unseen};
    assert_eq!(states, [Kept, Unseen, Seen, Seen, Lost]);
    assert_eq!(state_in(0, 0), Unseen);
}

#[test]
fn a_table_that_is_half_full_forgets_next_to_nothing() {
    let table = table();
    // 4096 sets of four.
    let grains = 4096 * 4 / 2;
    for grain in 0..grains {
        table.advance(FILE, grain, Way::Past);
    }
    let known = (0..grains).filter(|grain| table.state(FILE, *grain) == State::Seen);
    let known = known.count() as u64;
    assert!(known * 100 >= grains * 85, "{known} of {grains}");
    // And takes few for known that are not.
    let strangers = (0..grains).filter(|grain| table.state(FileId(9), *grain) != State::Unseen);
    let strangers = strangers.count() as u64;
    assert!(strangers * 100 <= grains, "{strangers} of {grains}");
}

#[test]
fn a_file_is_known_by_any_name_and_told_from_its_successor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, b"one").unwrap();
    let id = |path: &std::path::Path| FileId::of(&std::fs::metadata(path).unwrap());
    let first = id(&path);
    let other = folder.path().join("other");
    std::fs::rename(&path, &other).unwrap();
    std::fs::write(&other, b"changed").unwrap();
    assert_eq!(id(&other), first);
    std::fs::write(&path, b"two").unwrap();
    assert_ne!(id(&path), first);

    let file = FileId::new(1, 2, 3);
    for other in [(1, 2, 4), (1, 3, 3), (2, 2, 3), (2, 1, 3), (1, 3, 2)] {
        assert_ne!(FileId::new(other.0, other.1, other.2), file, "{other:?}");
    }
}
