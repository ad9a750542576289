//! A window knows how far it is filled, whatever it is made of, and no byte leaves it.

use super::*;
use crate::memory::Memory;
use crate::target::Target;

#[test]
fn put_fills_up_to_the_end_and_counts() {
    let mut bytes = [9u8; 5];
    let mut target = Target::from(&mut bytes);
    let mut window = target.window().unwrap();
    assert_eq!(window.put(b"abc"), 3);
    assert_eq!(window.put(b"defg"), 2);
    assert_eq!(
        (window.filled(), window.remaining(), window.put(b"h")),
        (5, 0, 0)
    );
    assert_eq!(&bytes, b"abcde");
}

#[test]
fn pread_beyond_the_largest_offset_is_an_error_not_a_wrap() {
    use std::os::fd::AsFd;
    let file = tempfile::tempfile().unwrap();
    let mut bytes = [0u8; 1];
    let mut target = Target::from(&mut bytes);
    assert_eq!(
        target.window().unwrap().pread(file.as_fd(), u64::MAX),
        Err(Errno::EOVERFLOW)
    );
}

/// Three stretches at 10..14, 14..15 and 20..23 of the file.
fn parts(memory: &mut [[u8; 6]; 3]) -> [Part; 3] {
    let [a, b, c] = memory;
    let part = |offset, memory: &mut [u8], piece| Part {
        offset,
        memory: Memory::of_mut(memory),
        piece,
        at: 0,
    };
    [
        part(10, &mut a[1..5], 0),
        part(14, &mut b[1..2], 1),
        part(20, &mut c[1..4], 2),
    ]
}

const LANDED: [&[u8; 6]; 3] = [b".klmn.", b".o....", b".uvw.."];

#[test]
fn bytes_that_are_put_into_a_scattered_window_land_in_its_stretches_and_those_of_gaps_nowhere() {
    let stream = b"klmnopqrstuvwxyz";
    for step in 1..=stream.len() {
        let mut memory = [[b'.'; 6]; 3];
        let parts = parts(&mut memory);
        // SAFETY: the stretches lie apart in `memory`, which outlives the window and is not used meanwhile.
        let mut window = unsafe { FillWindow::of_parts(&parts) };
        assert!(window.is_scattered());
        assert_eq!(window.len(), 13);
        let put: usize = stream.chunks(step).map(|bytes| window.put(bytes)).sum();
        assert_eq!((put, window.filled(), window.remaining()), (13, 13, 0));
        assert_eq!(memory.each_ref(), LANDED);
    }
}

#[test]
fn a_scattered_window_is_filled_by_one_call_and_by_calls_that_stop_anywhere() {
    use std::io::{Seek, Write};
    use std::os::fd::AsFd;
    let mut file = tempfile::tempfile().unwrap();
    for end in 10..=30 {
        file.set_len(0).unwrap();
        file.rewind().unwrap();
        file.write_all(&b"abcdefghijklmnopqrstuvwxyzabcd"[..end])
            .unwrap();
        let mut memory = [[b'.'; 6]; 3];
        let parts = parts(&mut memory);
        // SAFETY: as above.
        let mut window = unsafe { FillWindow::of_parts(&parts) };
        let first = window.pread(file.as_fd(), 10).unwrap();
        assert_eq!(
            (first, window.filled()),
            ((end - 10).min(13), (end - 10).min(13))
        );
        file.write_all(&b"abcdefghijklmnopqrstuvwxyzabcd"[end..])
            .unwrap();
        while window.remaining() > 0 {
            assert!(
                window
                    .pread(file.as_fd(), 10 + window.filled() as u64)
                    .unwrap()
                    > 0
            );
        }
        assert_eq!(memory.each_ref(), LANDED, "stopped at {end}");
    }
}

#[test]
fn a_gap_that_is_longer_than_the_place_for_what_nobody_wants_is_dropped_too() {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileExt;
    let file = tempfile::tempfile().unwrap();
    let far = 10 + 3 * SINK as u64 + 7;
    file.write_all_at(b"one", 7).unwrap();
    file.write_all_at(b"two", far).unwrap();
    let (mut one, mut two) = ([0; 3], [0; 3]);
    let part = |offset, memory: &mut [u8]| Part {
        offset,
        memory: Memory::of_mut(memory),
        piece: 0,
        at: 0,
    };
    let parts = [part(7, &mut one), part(far, &mut two)];
    // SAFETY: two arrays that outlive the window and are not used meanwhile.
    let mut window = unsafe { FillWindow::of_parts(&parts) };
    let len = window.len();
    assert_eq!(window.pread(file.as_fd(), 7), Ok(len));
    assert_eq!((&one, &two), (b"one", b"two"));
}
