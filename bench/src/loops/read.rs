//! Read loops: `pread` straight into the target, through an aligned scratch, or a copy out of mapped windows.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use std::path::Path;

use super::direct::{self, ALIGNMENT};
use super::{CHUNK, by_threads, each_on_a_thread, part_len, size_name};
use crate::memory::{FileWindow, Pages};
use crate::streaming;

/// How a loop gets the first bytes of a file into a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadLoop {
    /// `pread` of `chunk` bytes at a time into the target.
    Pread { chunk: usize, threads: usize },
    /// `pread` into a 256 KiB scratch that stays in the cache, and on by streaming stores: right for targets at which the
    /// kernel's own copy is slow.
    Scratch { threads: usize },
    /// Windows of 16 MiB mapped with `MAP_POPULATE`, copied by streaming stores, unmapped. Only for a file that is ours: a
    /// mapped file that somebody else shortens ends the process.
    Mapped { threads: usize },
    /// All of the file mapped once and for all, and copied by streaming stores from there. Only for a file that is ours.
    Kept { threads: usize },
    /// `pread` of `chunk` bytes at a time past the page cache, into a target that begins at a page.
    Direct { chunk: usize, threads: usize },
}

/// What a loop wants at hand before the clock runs.
pub(crate) struct ReadTools {
    /// One for each thread, touched.
    scratches: Vec<Pages>,
    /// The file, opened past the page cache.
    direct: Option<File>,
    /// All of the file, mapped by the first turn.
    map: Option<FileWindow>,
}

impl ReadLoop {
    /// The loops for reads of a file out of the page cache. `ours`: nobody else writes to the file or shortens it.
    pub(crate) fn hot(chunk: usize, threads: &[usize], ours: bool) -> Vec<Self> {
        let mut loops = Vec::new();
        for &threads in threads {
            loops.push(Self::Pread { chunk, threads });
            if streaming::available() {
                loops.push(Self::Scratch { threads });
                if ours {
                    loops.push(Self::Mapped { threads });
                }
            }
        }
        loops
    }

    /// The loops for reads out of maps: out of one that stays, unless it is mapped for the read `once`. A file that is not `ours`
    /// is not mapped here; for that there are the other hot ones.
    pub(crate) fn mapped(threads: usize, once: bool, ours: bool) -> Vec<Self> {
        let mut loops = Self::hot(CHUNK, &[threads], ours);
        if ours && streaming::available() {
            loops.retain(|each| matches!(each, Self::Mapped { .. }));
            if !once {
                loops.push(Self::Kept { threads });
            }
        }
        loops
    }

    /// The loops for reads that come from the disk. `direct`: the file can be opened past the page cache, and the target
    /// begins at a page.
    pub(crate) fn cold(chunk: usize, threads: &[usize], direct: bool) -> Vec<Self> {
        let mut loops = Vec::new();
        for &threads in threads {
            loops.push(Self::Pread { chunk, threads });
            if direct {
                loops.push(Self::Direct { chunk, threads });
            }
        }
        loops
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Self::Pread { chunk, threads } => format!(
                "pread {}, {}",
                size_name(*chunk as u64),
                by_threads(*threads)
            ),
            Self::Scratch { threads } => {
                format!(
                    "pread {} + streaming, {}",
                    size_name(SCRATCH as u64),
                    by_threads(*threads)
                )
            }
            Self::Mapped { threads } => {
                format!(
                    "mapped {} + streaming, {}",
                    size_name(WINDOW as u64),
                    by_threads(*threads)
                )
            }
            Self::Kept { threads } => {
                format!("map that stays + streaming, {}", by_threads(*threads))
            }
            Self::Direct { chunk, threads } => format!(
                "pread {}, O_DIRECT, {}",
                size_name(*chunk as u64),
                by_threads(*threads)
            ),
        }
    }

    fn threads(&self) -> usize {
        match self {
            Self::Pread { threads, .. }
            | Self::Scratch { threads }
            | Self::Mapped { threads }
            | Self::Kept { threads }
            | Self::Direct { threads, .. } => *threads,
        }
    }

    /// What [`run`](Self::run) wants to read the file at `path`.
    pub(crate) fn tools(&self, path: &Path) -> io::Result<ReadTools> {
        let scratches = match self {
            Self::Scratch { threads } => *threads,
            _ => 0,
        };
        let direct = matches!(self, Self::Direct { .. }).then(|| direct::open(path, false));
        Ok(ReadTools {
            scratches: (0..scratches)
                .map(|_| Pages::new(SCRATCH))
                .collect::<io::Result<_>>()?,
            direct: direct.transpose()?,
            map: None,
        })
    }

    /// Fills `target` with the first bytes of `file`.
    ///
    /// # Safety
    /// For [`ReadLoop::Mapped`] and [`ReadLoop::Kept`] the file must be at least as long as `target`, and nobody may write to it
    /// or shorten it meanwhile, nor, for the latter, while the tools live.
    pub(crate) unsafe fn run(
        &self,
        file: &File,
        target: &mut [u8],
        tools: &mut ReadTools,
    ) -> io::Result<()> {
        let part = part_len(target.len(), self.threads());
        let parts = target.chunks_mut(part).zip((0_u64..).step_by(part));
        match self {
            Self::Pread { chunk, .. } => each_on_a_thread(parts.collect(), |(target, offset)| {
                for (piece, offset) in target.chunks_mut(*chunk).zip((offset..).step_by(*chunk)) {
                    file.read_exact_at(piece, offset)?;
                }
                Ok(())
            }),
            Self::Scratch { .. } => each_on_a_thread(
                parts.zip(&mut tools.scratches).collect(),
                |((target, offset), scratch)| {
                    for (piece, offset) in
                        target.chunks_mut(SCRATCH).zip((offset..).step_by(SCRATCH))
                    {
                        let scratch = scratch.view_mut(0, piece.len());
                        file.read_exact_at(scratch, offset)?;
                        streaming::copy(piece, scratch);
                    }
                    Ok(())
                },
            ),
            Self::Mapped { .. } => each_on_a_thread(parts.collect(), |(target, offset)| {
                for (piece, offset) in target.chunks_mut(WINDOW).zip((offset..).step_by(WINDOW)) {
                    // SAFETY: our caller answers for the file: long enough, and nobody changes it.
                    let window = unsafe { FileWindow::populate(file, offset, piece.len()) }?;
                    streaming::copy(piece, window.bytes());
                }
                Ok(())
            }),
            Self::Kept { .. } => {
                let map = match &mut tools.map {
                    Some(map) => map,
                    none => {
                        let len = file.metadata()?.len() as usize;
                        // SAFETY: our caller answers for the file as long as the tools live.
                        none.insert(unsafe { FileWindow::populate(file, 0, len) }?)
                    }
                };
                let source = map.bytes();
                each_on_a_thread(parts.collect(), |(target, offset)| {
                    streaming::copy(target, &source[offset as usize..][..target.len()]);
                    Ok(())
                })
            }
            Self::Direct { chunk, .. } => {
                let direct = tools.direct.as_ref().unwrap_or(file);
                each_on_a_thread(parts.collect(), |(target, offset)| {
                    for (piece, offset) in target.chunks_mut(*chunk).zip((offset..).step_by(*chunk))
                    {
                        // Whole pages go past the page cache; what is left of the file's last page cannot.
                        let whole = piece.len() / ALIGNMENT * ALIGNMENT;
                        let (body, tail) = piece.split_at_mut(whole);
                        direct.read_exact_at(body, offset)?;
                        file.read_exact_at(tail, offset + whole as u64)?;
                    }
                    Ok(())
                })
            }
        }
    }
}

/// Small reads at many places, one after the other, by the caller's thread.
pub(crate) struct SmallRead;

impl SmallRead {
    pub(crate) fn name(size: usize) -> String {
        format!("pread {}, 1 thread", size_name(size as u64))
    }

    pub(crate) fn run(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        file.read_at(buffer, offset)
    }
}

// Measured best of 64 KiB to 1 MiB on the two-core machine: it fits the second-level cache with room for the target's lines.
const SCRATCH: usize = 256 << 10;
// Large enough that mapping and unmapping are shared by 4096 pages, small enough that their page table entries stay cached.
const WINDOW: usize = 16 << 20;

const _: () = assert!(CHUNK.is_multiple_of(SCRATCH));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern;

    #[test]
    fn every_loop_brings_the_same_bytes_at_every_alignment() {
        let len = 17 * (1 << 20) + 4096 + 77;
        let mut content = vec![0; len];
        pattern::fill(&mut content, 21, 0);
        let named = tempfile::NamedTempFile::new().expect("a temporary file");
        let file = named.as_file();
        file.write_all_at(&content, 0).expect("written");
        let mut pages = Pages::new(len + 4096).expect("memory");
        let mut loops = ReadLoop::hot(CHUNK, &[1, 2, 5], true);
        loops.extend(ReadLoop::mapped(2, false, true));
        loops.push(ReadLoop::Pread {
            chunk: 128 << 10,
            threads: 3,
        });
        if direct::possible(named.path()) {
            loops.extend(ReadLoop::cold(CHUNK, &[1, 2], true));
        }
        for each in loops {
            let mut tools = each.tools(named.path()).expect("tools");
            for offset in [0, 33] {
                if offset > 0 && matches!(each, ReadLoop::Direct { .. }) {
                    continue;
                }
                let target = pages.view_mut(offset, len);
                target.fill(0);
                // SAFETY: the file is this test's own.
                unsafe { each.run(file, target, &mut tools) }.expect("read");
                assert_eq!(
                    pattern::first_difference(target, 21, 0),
                    None,
                    "{} at {offset}",
                    each.name()
                );
            }
        }
    }

    #[test]
    fn a_file_that_is_too_short_is_an_error() {
        let file = tempfile::tempfile().expect("a temporary file");
        file.set_len(1000).expect("resized");
        let each = ReadLoop::Pread {
            chunk: CHUNK,
            threads: 1,
        };
        let mut tools = each.tools(Path::new("none")).expect("nothing is needed");
        // SAFETY: not a mapped loop.
        let error = unsafe { each.run(&file, &mut [0; 1001], &mut tools) }
            .expect_err("one byte is missing");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_file_of_somebody_else_is_never_mapped() {
        for loops in [
            ReadLoop::hot(CHUNK, &[1, 2], false),
            ReadLoop::mapped(2, false, false),
        ] {
            assert!(!loops.is_empty());
            assert!(
                !loops
                    .iter()
                    .any(|each| matches!(each, ReadLoop::Mapped { .. } | ReadLoop::Kept { .. }))
            );
        }
        assert_eq!(ReadLoop::cold(CHUNK, &[1, 2], false).len(), 2);
        assert_eq!(ReadLoop::cold(CHUNK, &[1, 2], true).len(), 4);
    }
}
