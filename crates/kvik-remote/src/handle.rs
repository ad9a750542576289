//! Door three: [`RemoteHandle`], a remote object read in parallel at any offset.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kvik_config::{ByteSize, Config};
use kvik_core::corridor::{Call, Engine, PerProcess, Plan, Wishes, outside_listeners, refused};
use kvik_core::{
    IoBufMut, Op, Pending, ReadAt, ReadAtExt, ReadOptions, ReadPiece, Result, Target, ThreadPool,
};

use crate::endpoint::Addressing;
use crate::fetch::{Fetch, Room, Stretch};
use crate::location::Kind;
use crate::object::Object;
use crate::options::RemoteOptions;
use crate::origin::Asker;
use crate::pending_open::PendingOpen;
use crate::validator::Validator;

/// An object of a server, opened. Cloning it gives another handle to the same object, with the same connections; all methods
/// take `&self` and may be called from any thread at once.
///
/// The size is that from when it was opened. Ranges are asked for in pieces, several at a time; what fails in passing is
/// asked for again, from the byte that was reached. All bytes of one handle are of one version of the object, as far as the
/// server lets versions be told apart ([`validator`](RemoteHandle::validator)), or the read fails with `Changed`.
///
/// # Example: the second half of an object
/// ```no_run
/// # fn main() -> kvik_core::Result<()> {
/// let object = kvik_remote::RemoteHandle::open("https://example.org/weights.bin")?;
/// let half = object.len() / 2;
/// let mut bytes = vec![0; half as usize];
/// object.read_exact_at(&mut bytes, object.len() - half)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RemoteHandle(Arc<Opened>);

struct Opened {
    object: Arc<Object>,
    kind: Kind,
    manner: Manner,
}

/// How an object of S3 is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct S3Facts {
    /// The URL that requests go to, without secrets.
    pub address: String,
    /// Where the bucket stands in that: in the path or in the host, and never [`Addressing::Auto`].
    pub addressing: Addressing,
    /// Where the keys that sign came from, for people to read; `None` if nothing is signed.
    pub keys: Option<String>,
    /// The region that requests are for.
    pub region: String,
}

/// How its calls go about it.
pub(crate) struct Manner {
    pub(crate) timeout: Option<Duration>,
    pub(crate) concurrency: Option<usize>,
    pub(crate) part_size: Option<ByteSize>,
    pub(crate) config: Option<Config>,
    pub(crate) pool: Option<ThreadPool>,
}

impl RemoteHandle {
    /// Opens the object at `url`.
    ///
    /// # Errors
    /// As for [`RemoteOptions::open`].
    pub fn open(url: &str) -> Result<RemoteHandle> {
        RemoteOptions::new().open(url)
    }

    /// Starts to open the object at `url`.
    ///
    /// # Example: opened by an executor of whatever kind
    /// ```no_run
    /// # async fn open() -> kvik_core::Result<()> {
    /// let object = kvik_remote::RemoteHandle::submit_open("https://example.org/weights.bin").await?;
    /// println!("{} bytes", object.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit_open(url: &str) -> PendingOpen {
        RemoteOptions::new().submit_open(url)
    }

    /// Opens the object `key` of the bucket `bucket` of S3, both as they are.
    ///
    /// # Errors
    /// As for [`RemoteOptions::open_bucket_key`].
    pub fn from_bucket_key(bucket: &str, key: &str) -> Result<RemoteHandle> {
        RemoteOptions::new().open_bucket_key(bucket, key)
    }

    /// Options for everything else: short for [`RemoteOptions::new`].
    pub fn builder() -> RemoteOptions {
        RemoteOptions::new()
    }

    /// The size in bytes, as it was found when the object was opened, or as the caller said.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.object.len
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// By which protocol it is read.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// What the server said of its version; `None` if nothing was asked of it yet, since the caller said the size.
    #[must_use]
    pub fn validator(&self) -> Option<Validator> {
        self.0
            .object
            .validator()
            .map(|validator| Validator::clone(&validator))
    }

    /// The URL, without secrets.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.0.object.origin.name
    }

    /// How the server calls itself (`Server`), as soon as it has sent something; `None` if it does not say.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.0.object.origin.server.get()
    }

    /// How an object of S3 is asked for, as far as is known by now; `None` for one of another kind, and for a presigned URL.
    #[must_use]
    pub fn s3(&self) -> Option<S3Facts> {
        match &self.0.object.origin.asker {
            Asker::Store(store) => Some(S3Facts {
                address: store.address(),
                addressing: store.addressing(),
                keys: store.key_source(),
                region: store.region_in_use(),
            }),
            Asker::Plain(_) | Asker::Cluster(_) => None,
        }
    }

    /// Reads into `target` from `offset` on; returns the count of bytes, short only at the end of the object and 0 at or past
    /// it.
    ///
    /// # Errors
    /// What the first failing piece met, after all others have stopped: the kinds of [`RemoteOptions::open`], and `Changed`
    /// if the object is not the one that was opened. But for that the bytes that [`Error::done`](kvik_core::Error::done)
    /// counts are in the target.
    pub fn read_at<'a>(&self, target: impl Into<Target<'a>>, offset: u64) -> Result<usize> {
        self.read_at_with(target, offset, &ReadOptions::default())
    }

    /// [`read_at`](RemoteHandle::read_at) with wishes of its own.
    ///
    /// # Errors
    /// As for `read_at`; `TimedOut` if the deadline passed.
    pub fn read_at_with<'a>(
        &self,
        target: impl Into<Target<'a>>,
        offset: u64,
        options: &ReadOptions,
    ) -> Result<usize> {
        let mut target = target.into();
        self.call(target.len() as u64, options)?
            .read(&mut target, offset)
    }

    /// Fills all of `target` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the object ends before, else as for [`read_at`](RemoteHandle::read_at).
    pub fn read_exact_at<'a>(&self, target: impl Into<Target<'a>>, offset: u64) -> Result<()> {
        ReadAtExt::read_exact_at(self, target, offset)
            .map_err(|error| error.at(&self.0.object.origin.place))
    }

    /// Starts to read into `buffer` from `offset` on.
    pub fn submit_read<B: IoBufMut>(&self, buffer: B, offset: u64) -> Pending<B> {
        self.submit_read_with(buffer, offset, &ReadOptions::default())
    }

    /// [`submit_read`](RemoteHandle::submit_read) with wishes of its own.
    pub fn submit_read_with<B: IoBufMut>(
        &self,
        mut buffer: B,
        offset: u64,
        options: &ReadOptions,
    ) -> Pending<B> {
        let len = buffer.target().len() as u64;
        match self.call(len, options) {
            Ok(call) => call.submit_read(buffer, offset),
            Err(error) => refused(error, buffer),
        }
    }

    /// Reads all `pieces` in one call; returns the count of bytes of each, in the order of the pieces: short only where the
    /// object ends. Pieces that lie close together come with one request, and what lies between them is dropped: up to 32 KiB
    /// unless [`ReadOptions::gap`] says otherwise.
    ///
    /// # Errors
    /// As for [`read_at`](RemoteHandle::read_at); range and count are those of the piece that failed.
    pub fn read_ranges(&self, pieces: &mut [ReadPiece<'_>]) -> Result<Vec<usize>> {
        self.read_ranges_with(pieces, &ReadOptions::default())
    }

    /// [`read_ranges`](RemoteHandle::read_ranges) with wishes of its own.
    ///
    /// # Errors
    /// As for `read_ranges`; `TimedOut` if the deadline passed.
    pub fn read_ranges_with(
        &self,
        pieces: &mut [ReadPiece<'_>],
        options: &ReadOptions,
    ) -> Result<Vec<usize>> {
        let wishes = Wishes::from(options);
        let gap = wishes.gap.map_or(GAP, |gap| gap.bytes());
        let len = pieces.iter().map(|piece| piece.len() as u64).sum();
        self.call(len, options)?.read_ranges(pieces, gap)
    }

    pub(crate) fn new(object: Object, kind: Kind, manner: Manner) -> RemoteHandle {
        RemoteHandle(Arc::new(Opened {
            object: Arc::new(object),
            kind,
            manner,
        }))
    }

    fn call(&self, len: u64, options: &ReadOptions) -> Result<Call> {
        let Opened { object, manner, .. } = &*self.0;
        outside_listeners(Op::Read).map_err(|error| error.at(&object.origin.place))?;
        let wishes = Wishes::from(options);
        let config = manner.config.clone().unwrap_or_else(Config::current);
        let requests = match (wishes.num_threads, manner.concurrency) {
            (Some(requests), _) | (None, Some(requests)) => requests,
            (None, None) => object.origin.requests(),
        };
        let part = match wishes.task_size.or(manner.part_size) {
            Some(size) => size.bytes(),
            None => config.task_size()?.bytes().min(Plan::share(len, requests)),
        };
        // A thread keeps many requests under way; one that reads a single piece has the pool grow for it, so that many such
        // reads are under way at a time.
        let threads = match len <= part {
            true => requests.min(ThreadPool::MAX_THREADS),
            false => requests.min(config.num_threads()?),
        };
        let (threads, room) = match wishes.num_threads.or(manner.concurrency) {
            // A read that is no longer than what is under way at a time tells nothing of how many that should be.
            None if len >= part.saturating_mul(requests as u64) => {
                let lanes = threads.max(1);
                let stretch = Stretch::new(requests, part);
                (threads, Room::Learnt { lanes, stretch })
            }
            _ => {
                let (threads, room) = spread(requests, threads);
                (threads, Room::Fixed(room))
            }
        };
        let deadline = [
            wishes.deadline,
            manner
                .timeout
                .and_then(|limit| Instant::now().checked_add(limit)),
        ];
        let deadline = deadline.into_iter().flatten().min();
        let engine: Arc<dyn Engine> = Arc::new(Fetch::new(Arc::clone(object), room, deadline));
        Ok(Call {
            for_device: Arc::clone(&engine),
            engine,
            cufile: None,
            bounce_buffer_size: config.bounce_buffer_size()?.bytes(),
            pool: manner.pool.clone().unwrap_or_else(shared_pool),
            threads,
            task_size: part,
            deadline,
            place: object.origin.place.clone(),
            name: Arc::clone(&object.origin.name),
        })
    }
}

impl ReadAt for RemoteHandle {
    fn read_at(&self, target: Target<'_>, offset: u64) -> Result<usize> {
        RemoteHandle::read_at(self, target, offset)
    }

    fn len(&self) -> Result<u64> {
        Ok(RemoteHandle::len(self))
    }

    fn read_ranges(&self, pieces: &mut [ReadPiece<'_>]) -> Result<Vec<usize>> {
        RemoteHandle::read_ranges(self, pieces)
    }
}

impl fmt::Debug for RemoteHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteHandle({}, {} bytes)", self.url(), self.len())
    }
}

/// The pool of all remote handles. Workers that wait for a network are not to keep those of files waiting.
fn shared_pool() -> ThreadPool {
    static POOL: PerProcess<ThreadPool> = PerProcess::new();
    POOL.get_or(|| ThreadPool::new("kvik-remote")).clone()
}

/// How many threads have how many requests under way each, so that all of them are as many as can be, and no more than
/// `requests`.
fn spread(requests: usize, threads: usize) -> (usize, usize) {
    let room = requests.div_ceil(threads.max(1)).max(1);
    ((requests / room).max(1), room)
}

// Bringing so many bytes for nothing takes no longer than a request.
const GAP: u64 = 32 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_requests_are_under_way_than_are_wanted() {
        for (requests, threads, expected) in [
            (16, 4, (4, 4)),
            (16, 16, (16, 1)),
            (10, 4, (3, 3)),
            (5, 4, (2, 2)),
            (1, 1, (1, 1)),
            (0, 0, (1, 1)),
        ] {
            assert_eq!(spread(requests, threads), expected);
        }
        for requests in 1..200 {
            for threads in 1..=requests {
                let (threads, room) = spread(requests, threads);
                let all = threads * room;
                assert!(all <= requests && 2 * all > requests, "{all} of {requests}");
            }
        }
    }
}
