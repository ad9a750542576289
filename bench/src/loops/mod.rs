//! The limits: plain loops, written for one case each, with nothing in them that a careful programmer would leave out.
//!
//! They are ports of the C loops behind the project's measurements. A loop reads or writes the first bytes of one file; by
//! several threads it cuts them into contiguous parts, one for each, and starting the threads is part of its time.

pub(crate) mod direct;
mod fresh;
mod list;
mod read;
mod write;

pub(crate) use fresh::{FreshLoop, SMALL_PAGES};
pub(crate) use list::ListLoop;
pub(crate) use read::{ReadLoop, ReadTools, SmallRead};
pub(crate) use write::WriteLoop;

use std::io;

/// What a thread asks the kernel for in one call where nothing else is said.
pub(crate) const CHUNK: usize = 4 << 20;

/// Runs `work` on every part, each on a thread of its own, the last on the caller's; the first error in part order wins.
#[expect(
    clippy::disallowed_methods,
    reason = "a plain loop is measured beside our pool, so it has threads of its own"
)]
pub(crate) fn each_on_a_thread<P: Send>(
    parts: Vec<P>,
    work: impl Fn(P) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let work = &work;
    std::thread::scope(|scope| {
        let mut parts = parts;
        let last = parts.pop();
        let others: Vec<_> = parts
            .into_iter()
            .map(|part| {
                std::thread::Builder::new()
                    .name("kvik-bench".into())
                    .spawn_scoped(scope, move || work(part))
            })
            .collect();
        let last = last.map_or(Ok(()), work);
        for other in others {
            // A panic of a loop is a panic of the benchmark: there is nobody who could go on without it.
            other?
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        last
    })
}

/// The length of a thread's part: equal parts, in whole steps of 1 MiB so that every part starts at a page of the file.
fn part_len(len: usize, threads: usize) -> usize {
    len.div_ceil(threads.max(1)).next_multiple_of(1 << 20)
}

/// `1 thread`, `4 threads`.
pub(crate) fn by_threads(threads: usize) -> String {
    if threads == 1 {
        "1 thread".into()
    } else {
        format!("{threads} threads")
    }
}

/// `4 MiB`, `256 KiB`: sizes in the names of loops and cases.
pub(crate) fn size_name(bytes: u64) -> String {
    for (shift, unit) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{} {unit}", bytes >> shift);
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn parts_cover_everything_and_start_at_pages() {
        for (len, threads) in [
            (8 << 20, 1),
            (8 << 20, 2),
            (9 << 20, 4),
            (5 << 20, 16),
            (1, 3),
        ] {
            let part = part_len(len, threads);
            assert_eq!(part % 4096, 0);
            let parts = len.div_ceil(part);
            assert!(
                parts <= threads,
                "{len} bytes by {threads} threads are {parts} parts"
            );
        }
    }

    #[test]
    fn every_part_is_worked_on_and_an_error_comes_out() {
        let seen = Mutex::new(Vec::new());
        let outcome = each_on_a_thread(vec![0, 1, 2, 3], |part| {
            seen.lock().expect("no panics").push(part);
            if part == 2 {
                Err(io::Error::other("part two"))
            } else {
                Ok(())
            }
        });
        assert_eq!(outcome.expect_err("part two fails").to_string(), "part two");
        let mut seen = seen.into_inner().expect("no panics");
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3]);
        assert!(each_on_a_thread(Vec::<u8>::new(), |_| Ok(())).is_ok());
    }

    #[test]
    fn sizes_are_named_by_their_largest_whole_unit() {
        assert_eq!(size_name(4 << 20), "4 MiB");
        assert_eq!(size_name(1536 << 10), "1536 KiB");
        assert_eq!(size_name(1 << 30), "1 GiB");
        assert_eq!(size_name(100), "100 B");
    }
}
