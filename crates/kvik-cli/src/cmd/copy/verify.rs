//! Verifying: what the storage gives back, against the source, byte for byte.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::task::Context;

use kvik::{FileHandle, Pending};

use crate::Exit;
use crate::failure::{Failure, Result, show};
use crate::progress::Progress;
use crate::stop::Stop;

use super::journal::Written;
use super::medium::{HostMedium, Medium};
use super::pieces::{Piece, Pieces};
use super::pump::{Load, Stage, Work, drive, over};
use super::read_back;

/// Compares `size` bytes after dropping the cached pages of `target`, whose data is on the storage already. Where both
/// files have a hole there is nothing to compare.
pub(super) fn from_storage(
    source: &FileHandle,
    target: &FileHandle,
    path: &Path,
    size: u64,
    load: Load,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<()> {
    prepare(target, path, size)?;
    let pieces = Pieces::new(vec![source.clone(), target.clone()], size, load.piece);
    let work = Comparing {
        source,
        target,
        path: path.to_owned(),
        pieces,
        medium: HostMedium::new(load.piece),
        progress,
    };
    // A piece in flight holds two buffers here.
    drive(work, (load.depth / 2).max(1), stop)?;
    Ok(())
}

/// Compares what was written, by the checksums of the bytes as they came, after dropping the cached pages of `target`,
/// whose data is on the storage already.
pub(super) fn written(
    target: &FileHandle,
    (path, size): (&Path, u64),
    written: &[Written],
    load: Load,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<()> {
    prepare(target, path, size)?;
    match read_back::difference(target, written, load, stop, progress)? {
        None => Ok(()),
        Some(piece) => Err(mismatch(
            path,
            piece.range.start,
            &format!(
                "the storage has other bytes than came, among the {}",
                piece.len()
            ),
        )),
    }
}

/// Sees to it that the storage answers, and that there is as much as there should be.
fn prepare(target: &FileHandle, path: &Path, size: u64) -> Result<()> {
    // By the descriptor: the mode of the source may forbid opening it again.
    kvik::drop_file_page_cache(target.as_fd(), 0, 0, true)?;
    let length = target.len()?;
    if length == size {
        return Ok(());
    }
    Err(mismatch(
        path,
        size.min(length),
        &format!("it has {length} bytes instead of {size}"),
    ))
}

struct Comparing<'a> {
    source: &'a FileHandle,
    target: &'a FileHandle,
    path: PathBuf,
    pieces: Pieces,
    medium: HostMedium,
    progress: &'a mut Progress,
}

struct Pair {
    piece: Piece,
    wanted: Pending<Vec<u8>>,
    found: Pending<Vec<u8>>,
}

impl Stage for Pair {
    fn ready(&mut self, context: &mut Context<'_>) -> bool {
        // Both are asked, so that each of them knows whom to wake.
        let wanted = over(&mut self.wanted, context);
        over(&mut self.found, context) && wanted
    }
}

impl Work for Comparing<'_> {
    type Stage = Pair;

    fn begin(&mut self) -> Result<Option<Pair>> {
        let Some(piece) = self.pieces.next() else {
            return Ok(None);
        };
        let (start, len) = (piece.range.start, piece.len());
        let wanted = self.source.submit_read(self.medium.take(len)?, start);
        let found = self.target.submit_read(self.medium.take(len)?, start);
        Ok(Some(Pair {
            piece,
            wanted,
            found,
        }))
    }

    fn advance(&mut self, pair: Pair) -> Result<Option<Pair>> {
        let (read, wanted) = pair.wanted.finish();
        let read = read?;
        let (got, found) = pair.found.finish();
        let got = got?;
        if let Some(index) = first_difference(&wanted[..read], &found[..got]) {
            return Err(mismatch(
                &self.path,
                pair.piece.range.start + index as u64,
                "it differs from the source",
            ));
        }
        self.progress
            .advance(pair.piece.len() as u64 + pair.piece.hole);
        self.medium.give_back(wanted);
        self.medium.give_back(found);
        Ok(None)
    }
}

fn mismatch(path: &Path, offset: u64, what: &str) -> Failure {
    let message = format!("verify {}: {what} at byte {offset}", show(path));
    Failure::new(Exit::Integrity, "Mismatch", message)
        .hint("the copy was removed and the destination is as it was; suspect memory, cable or storage")
        .fact("offset", offset)
}

/// Where two byte strings part, which is at the end of the shorter one if it is the beginning of the other.
fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    if a == b {
        return None;
    }
    let common = a.iter().zip(b).position(|(a, b)| a != b);
    Some(common.unwrap_or(a.len().min(b.len())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Global;
    use crate::output::Output;
    use std::fs;

    #[test]
    fn the_first_difference_is_found() {
        assert_eq!(first_difference(b"", b""), None);
        assert_eq!(first_difference(b"abc", b"abc"), None);
        assert_eq!(first_difference(b"abc", b"abd"), Some(2));
        assert_eq!(first_difference(b"abc", b"ab"), Some(2));
        assert_eq!(first_difference(b"", b"a"), Some(0));
    }

    /// Verifies a copy of three megabytes after `spoil` had its way with it.
    fn verify(spoil: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        let bytes: Vec<u8> = (0..3_000_001u32).map(|i| (i % 251) as u8).collect();
        let mut spoiled = bytes.clone();
        spoil(&mut spoiled);
        fs::write(&a, &bytes).unwrap();
        fs::write(&b, &spoiled).unwrap();
        let (source, target) = (FileHandle::open(&a).unwrap(), FileHandle::open(&b).unwrap());
        let output = Output::new(&Global {
            quiet: true,
            ..Global::default()
        });
        let mut progress = Progress::new(&output, "verifying", 0);
        let load = Load {
            piece: 1 << 20,
            depth: 4,
        };
        let stop = Stop::new(&output);
        from_storage(
            &source,
            &target,
            &b,
            bytes.len() as u64,
            load,
            &stop,
            &mut progress,
        )
    }

    #[test]
    fn what_was_written_is_compared_by_the_checksums_of_what_came() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b");
        let bytes: Vec<u8> = (0..3_000_001u32).map(|i| (i % 251) as u8).collect();
        let written: Vec<Written> = (0..bytes.len())
            .step_by(1_000_000)
            .map(|start| {
                let end = bytes.len().min(start + 1_000_000);
                Written {
                    range: start as u64..end as u64,
                    checksum: crc32fast::hash(&bytes[start..end]),
                }
            })
            .collect();
        let output = Output::new(&Global {
            quiet: true,
            ..Global::default()
        });
        let (load, stop) = (
            Load {
                piece: 1 << 20,
                depth: 4,
            },
            Stop::new(&output),
        );
        let check = |spoiled: &[u8]| {
            fs::write(&path, spoiled).unwrap();
            let target = FileHandle::open(&path).unwrap();
            let mut progress = Progress::new(&output, "verifying", 0);
            let place = (path.as_path(), bytes.len() as u64);
            super::written(&target, place, &written, load, &stop, &mut progress)
        };
        check(&bytes).unwrap();
        for (offset, start) in [
            (0, 0),
            (999_999, 0),
            (1_000_000, 1_000_000),
            (3_000_000, 3_000_000),
        ] {
            let mut spoiled = bytes.clone();
            spoiled[offset] ^= 0x10;
            let failure = check(&spoiled).unwrap_err();
            assert_eq!(failure.exit(), Exit::Integrity);
            let end = format!("at byte {start}");
            assert!(failure.message().ends_with(&end), "{}", failure.message());
        }
        let failure = check(&bytes[..2_000_000]).unwrap_err();
        assert_eq!(failure.exit(), Exit::Integrity);
    }

    #[test]
    fn a_faithful_copy_passes() {
        verify(|_| {}).unwrap();
    }

    #[test]
    fn one_flipped_bit_is_an_integrity_error_that_names_the_byte() {
        for offset in [0, 1 << 20, 3_000_000] {
            let failure = verify(|bytes| bytes[offset] ^= 0x10).unwrap_err();
            assert_eq!(failure.exit(), Exit::Integrity);
            assert!(
                failure.message().ends_with(&format!("at byte {offset}")),
                "{}",
                failure.message()
            );
        }
    }

    #[test]
    fn a_copy_of_another_length_is_an_integrity_error() {
        let failure = verify(|bytes| bytes.truncate(2_000_000)).unwrap_err();
        assert_eq!(failure.exit(), Exit::Integrity);
        assert!(
            failure
                .message()
                .contains("2000000 bytes instead of 3000001"),
            "{}",
            failure.message()
        );
        assert_eq!(
            verify(|bytes| bytes.push(0)).unwrap_err().exit(),
            Exit::Integrity
        );
    }
}
