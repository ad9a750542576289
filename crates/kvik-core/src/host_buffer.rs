//! Memory made for reading into: [`HostBuffer`], and [`HostBufferPool`] to have the same memory again.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use kvik_config::{ByteSize, Config};

use crate::budget::{Budget, Loan, footprint};
use crate::buffer::{IoBuf, IoBufMut};
use crate::error::{Error, ErrorKind, Op, Place, Result};
use crate::fetch::present;
use crate::fork;
use crate::once::Once;
use crate::pages::Pages;
use crate::pool::ThreadPool;
use crate::target::{Source, Target};

/// Bytes in memory of their own that is made for reading into: it starts at a page, at a multiple of 2 MiB and on huge
/// pages where it is that long and the system has them, and all of it is there before the first byte comes.
///
/// Fresh memory of other kinds gets its pages one by one while the read fills it, which takes longer than the read. Here
/// several threads fetch them beforehand. What an aligned buffer saves besides depends on the machine.
///
/// # Example: a file into a buffer that is made for it
/// ```no_run
/// # fn main() -> kvik_core::Result<()> {
/// let file = kvik_core::FileHandle::open("weights.bin")?;
/// let mut bytes = kvik_core::HostBuffer::new(file.len()? as usize)?;
/// file.read_exact_at(&mut bytes, 0)?;
/// assert_eq!(&bytes[..4], b"GGUF");
/// # Ok(())
/// # }
/// ```
pub struct HostBuffer {
    // None for a buffer of no bytes, and while it is being dropped.
    pages: Option<Pages>,
    len: usize,
    // The pool that lent it, and in which process.
    home: Option<(HostBufferPool, u64)>,
}

impl HostBuffer {
    /// `len` bytes, all 0, fetched by as many threads as the setting `num_threads` says.
    ///
    /// # Errors
    /// `OutOfMemory` if there is not so much; `Config` for a bad setting.
    pub fn new(len: usize) -> Result<HostBuffer> {
        let threads = Config::current().num_threads()?;
        HostBuffer::new_with(len, &ThreadPool::global(), threads)
    }

    /// `len` bytes, all 0, fetched by up to `threads` threads: the calling one and others of `pool`.
    ///
    /// # Errors
    /// `OutOfMemory` if there is not so much.
    pub fn new_with(len: usize, pool: &ThreadPool, threads: usize) -> Result<HostBuffer> {
        let pages = match len {
            0 => None,
            _ => Some(present(len, pool, threads)?),
        };
        Ok(HostBuffer {
            pages,
            len,
            home: None,
        })
    }
}

/// Buffers that come back when they are dropped and are lent again, not more of them than a limit says.
///
/// Cloning it gives another handle to the same pool. Buffers may outlive all of its handles. A forked child has a pool of its
/// own by the same handles, with the same limit and nothing lent; buffers that it inherited do not count there.
///
/// # Example: never more than 1 GiB, whatever the files
/// ```no_run
/// # fn main() -> kvik_core::Result<()> {
/// use kvik_config::ByteSize;
/// use kvik_core::{FileHandle, HostBufferPool};
///
/// let pool = HostBufferPool::new(ByteSize::gib(1));
/// for path in ["a.bin", "b.bin"] {
///     let file = FileHandle::open(path)?;
///     let mut bytes = pool.take(file.len()? as usize)?;
///     file.read_exact_at(&mut bytes, 0)?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HostBufferPool(Arc<Shelf>);

struct Shelf {
    budget: Budget,
    limit: u64,
    generation: u64,
    // That of a forked child: somebody may have held the lock of the budget at the fork.
    of_child: Once<Box<Shelf>>,
}

impl Shelf {
    fn new(limit: u64) -> Shelf {
        Shelf {
            budget: Budget::default(),
            limit,
            generation: fork::generation(),
            of_child: Once::new(),
        }
    }

    /// The budget of this process.
    fn budget(&self) -> &Budget {
        let mut shelf = self;
        while shelf.generation != fork::generation() {
            let limit = self.limit;
            shelf = shelf.of_child.get_or_make(|| Box::new(Shelf::new(limit)));
        }
        &shelf.budget
    }
}

impl HostBufferPool {
    /// A pool of up to `limit` bytes, none of which it has yet. A buffer counts as whole pages.
    #[must_use]
    pub fn new(limit: ByteSize) -> HostBufferPool {
        HostBufferPool(Arc::new(Shelf::new(limit.bytes())))
    }

    /// Lends `len` bytes, which hold whatever their last user left; waits until enough have come back. A thread that holds
    /// all of them itself waits for ever: [`try_take`](HostBufferPool::try_take) does not.
    ///
    /// # Errors
    /// `Misuse` if it is more than the limit; else as for [`HostBuffer::new`].
    pub fn take(&self, len: usize) -> Result<HostBuffer> {
        self.check(len)?;
        self.lend(len, self.0.budget().wait(len, self.0.limit))
    }

    /// Lends `len` bytes, which hold whatever their last user left, unless that would be more than the limit with those
    /// that are out: `None`.
    ///
    /// # Errors
    /// As for [`take`](HostBufferPool::take).
    pub fn try_take(&self, len: usize) -> Result<Option<HostBuffer>> {
        self.check(len)?;
        let loan = self.0.budget().take(len, self.0.limit);
        loan.map(|loan| self.lend(len, loan)).transpose()
    }

    /// How many bytes are lent.
    #[must_use]
    pub fn lent(&self) -> u64 {
        self.0.budget().bytes().0
    }

    /// How many bytes are kept for the next ones who ask.
    #[must_use]
    pub fn kept(&self) -> u64 {
        self.0.budget().bytes().1
    }

    /// Gives what is kept to the system; returns how many bytes that were.
    pub fn free(&self) -> u64 {
        self.0.budget().free()
    }

    fn check(&self, len: usize) -> Result<()> {
        let limit = self.0.limit;
        if footprint(len) <= limit {
            return Ok(());
        }
        let why = format!("{len} bytes are more than the limit of the pool, {limit}");
        Err(Error::new(ErrorKind::Misuse, Op::Allocate, why).at(&Place::Memory))
    }

    fn lend(&self, len: usize, loan: Loan) -> Result<HostBuffer> {
        let mut buffer = match loan {
            Loan::Kept(pages) => HostBuffer {
                pages: Some(pages),
                len,
                home: None,
            },
            Loan::New(len) => HostBuffer::new(len).inspect_err(|_| self.0.budget().forgo(len))?,
        };
        buffer.home = Some((self.clone(), fork::generation()));
        Ok(buffer)
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        if let (Some(pages), Some((home, generation))) = (self.pages.take(), &self.home)
            && *generation == fork::generation()
        {
            home.0.budget().put(pages);
        }
    }
}

impl Deref for HostBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.pages
            .as_deref()
            .map_or(&[], |pages| &pages[..self.len])
    }
}

impl DerefMut for HostBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.pages
            .as_deref_mut()
            .map_or(&mut [], |pages| &mut pages[..self.len])
    }
}

// SAFETY: the bytes are a mapping of the buffer's own, which moving the buffer does not move and only dropping it unmaps
// or gives to somebody else.
unsafe impl IoBuf for HostBuffer {
    fn source(&self) -> Source<'_> {
        Source::from(&self[..])
    }
}

// SAFETY: as for `IoBuf`; no other buffer has the mapping.
unsafe impl IoBufMut for HostBuffer {
    fn target(&mut self) -> Target<'_> {
        Target::from(&mut self[..])
    }
}

impl<'a> From<&'a mut HostBuffer> for Target<'a> {
    fn from(buffer: &'a mut HostBuffer) -> Target<'a> {
        Target::from(&mut buffer[..])
    }
}

impl<'a> From<&'a HostBuffer> for Source<'a> {
    fn from(buffer: &'a HostBuffer) -> Source<'a> {
        Source::from(&buffer[..])
    }
}

impl fmt::Debug for HostBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostBuffer({} bytes)", self.len)
    }
}

impl fmt::Debug for HostBufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lent, kept) = self.0.budget().bytes();
        write!(
            f,
            "HostBufferPool({lent} bytes lent, {kept} kept, at most {})",
            self.0.limit
        )
    }
}

#[cfg(test)]
#[path = "host_buffer_tests.rs"]
mod tests;
