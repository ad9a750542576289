//! Many reads and writes, of any files and any memory, submitted at once: [`Batch`], and each with an outcome of its own.
//!
//! ```text
//! Batch -> groups of one file, direction and memory -> a transfer for each, whose layout is Entries
//!                                                         |  each entry's end is told to
//! PendingBatch <-----------------------------------  Progress
//! ```
//! A group is a transfer like any other: so small entries share workers, system calls and slabs of pinned memory, large ones are
//! cut into tasks, and entries that cuFile is to move go to it many at a time. What differs is that an entry that fails stops
//! none of the others.

mod entries;
mod groups;
mod pending;
mod progress;

pub(crate) use entries::Entries;
pub use pending::{Completed, Finished, PendingBatch};

use std::fmt;

use kvik_stats::Direction;

use crate::buffer::{IoBuf, IoBufMut};
use crate::device::Spot;
use crate::file::FileHandle;
use crate::memory::Memory;
use crate::options::ReadOptions;

/// A list of reads and writes that are to be submitted together, each of a file, an offset and a buffer.
///
/// Files may differ, directions may, and with [`AnyBuffer`](crate::AnyBuffer) the kinds of memory, too. Entries have no order:
/// if two write to the same bytes, or one reads what another writes, nobody knows which comes first. What was queued on the
/// default stream of a device, and on streams that a buffer names, before the submission comes before the entry.
///
/// Memory of others takes part as an [`IoBuf`] and [`IoBufMut`] of its owner's making. Entries of one file, direction and place of
/// memory, which go the same way and behind the same streams, are one transfer: one operation in the statistics.
///
/// # Example: two ranges of one file and a write to another
/// ```
/// # fn main() -> kvik_core::Result<()> {
/// # let folder = std::env::temp_dir();
/// # let path = folder.join(format!("kvik-batch-{}", std::process::id()));
/// # let copy = folder.join(format!("kvik-batch-{}.copy", std::process::id()));
/// # std::fs::write(&path, b"one two three").unwrap();
/// use kvik_core::{Batch, FileHandle};
///
/// let (file, other) = (FileHandle::open(&path)?, FileHandle::create(&copy)?);
/// let mut batch = Batch::new();
/// batch.read(&file, 4, vec![0; 3]);
/// batch.read(&file, 8, vec![0; 100]);
/// batch.write(&other, 0, b"four".to_vec());
///
/// let [two, three, four] = batch.submit().finish().try_into().unwrap();
/// assert_eq!(two.into_buffer()?, b"two");
/// assert_eq!(three.outcome?, 5);
/// assert_eq!(four.outcome?, 4);
/// # std::fs::remove_file(&path).unwrap();
/// # std::fs::remove_file(&copy).unwrap();
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is moved before `submit` is called"]
pub struct Batch<B> {
    entries: Vec<Entry<B>>,
    buffers: Vec<B>,
    options: ReadOptions,
}

/// What is to become of one buffer.
struct Entry<B> {
    file: FileHandle,
    offset: u64,
    direction: Direction,
    // Where the buffer's memory is. Reads and writes ask different traits.
    place: fn(&mut B) -> (Memory, Option<Spot>),
}

impl<B> Batch<B> {
    /// A batch without entries.
    pub fn new() -> Batch<B> {
        Batch::with_options(&ReadOptions::default())
    }

    /// The same, with wishes for all entries.
    ///
    /// [`num_threads`](ReadOptions::num_threads) holds for each transfer that they make on its own.
    pub fn with_options(options: &ReadOptions) -> Batch<B> {
        Batch {
            entries: Vec::new(),
            buffers: Vec::new(),
            options: options.clone(),
        }
    }

    /// Adds a read from `offset` on, of as many bytes as `buffer` is long. Returns the number of the entry.
    pub fn read(&mut self, file: &FileHandle, offset: u64, buffer: B) -> usize
    where
        B: IoBufMut,
    {
        let place = |buffer: &mut B| {
            let target = buffer.target();
            (target.memory(), target.spot())
        };
        self.add(file, offset, Direction::Read, place, buffer)
    }

    /// Adds a write of all of `buffer` at `offset`. Returns the number of the entry.
    pub fn write(&mut self, file: &FileHandle, offset: u64, buffer: B) -> usize
    where
        B: IoBuf,
    {
        let place = |buffer: &mut B| {
            let source = buffer.source();
            (source.memory(), source.spot())
        };
        self.add(file, offset, Direction::Write, place, buffer)
    }

    /// How many entries it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Starts all entries and returns at once. What is wrong with an entry is its outcome, and no other entry's.
    pub fn submit(self) -> PendingBatch<B>
    where
        B: Send + 'static,
    {
        let Batch {
            entries,
            mut buffers,
            options,
        } = self;
        // From here on no buffer is touched: their memory is the transfers'.
        let places: Vec<_> = entries
            .iter()
            .zip(&mut buffers)
            .map(|(entry, buffer)| (entry.place)(buffer))
            .collect();
        let mut pending = PendingBatch::new(buffers);
        let given = entries
            .into_iter()
            .zip(places)
            .map(|(entry, (memory, spot))| groups::Given {
                file: entry.file,
                direction: entry.direction,
                offset: entry.offset,
                memory,
                spot,
            });
        groups::start(given, &options, &mut pending);
        pending
    }

    fn add(
        &mut self,
        file: &FileHandle,
        offset: u64,
        direction: Direction,
        place: fn(&mut B) -> (Memory, Option<Spot>),
        buffer: B,
    ) -> usize {
        self.entries.push(Entry {
            file: file.clone(),
            offset,
            direction,
            place,
        });
        self.buffers.push(buffer);
        self.entries.len() - 1
    }
}

impl<B> Default for Batch<B> {
    fn default() -> Batch<B> {
        Batch::new()
    }
}

impl<B> fmt::Debug for Batch<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({} entries)", self.len())
    }
}
