//! Objects opened as the options say, by a thread that waits or in the background.

use std::future::Future;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kvik_config::Config;
use kvik_core::corridor::outside_listeners;
use kvik_core::{Error, ErrorKind, Op, Place, Result};

use super::RemoteOptions;
use crate::handle::{Manner, RemoteHandle};
use crate::location::{Kind, Location};
use crate::object::Object;
use crate::opening;
use crate::origin::{Asker, Origin};
use crate::pending_open::PendingOpen;
use crate::transport::drive;

/// All that is said of an object before its server is asked.
struct Prepared {
    origin: Origin,
    kind: Kind,
    manner: Manner,
    len: Option<u64>,
    whole_limit: u64,
}

impl RemoteOptions {
    /// Opens the object at `url`, and finds out its size by asking for its first bytes, which are kept. Of a file of
    /// HDFS the name node is asked for the status.
    ///
    /// # Errors
    /// - `NotFound`, `PermissionDenied`, `Refused`: the server says so.
    /// - `Unreachable`, `TimedOut`, `BadReply`: what was tried again and again, and failed the last time as well.
    /// - `Untrusted`: the server does not prove itself.
    /// - `RangeUnsupported`: the server sends no ranges, and the object is longer than
    ///   [`whole_limit`](RemoteOptions::whole_limit).
    /// - `Misuse`: the URL is none, or an option makes no sense; `Config`: a setting has a bad value, or keys of S3
    ///   are not what they must be.
    /// - `IsADirectory`: HDFS has a directory there.
    /// - `Unsupported`: the URL's scheme is none that is known, or the keys are to come from where this version does not get
    ///   any.
    pub fn open(&self, url: &str) -> Result<RemoteHandle> {
        self.open_location(&self.locate(url)?)
    }

    /// Opens the object `key` of `bucket`, both as they are: nothing in them is a separator, an escape or a query.
    ///
    /// # Errors
    /// As for [`open`](RemoteOptions::open), and for [`Location::from_bucket_key`].
    pub fn open_bucket_key(&self, bucket: &str, key: &str) -> Result<RemoteHandle> {
        self.open_location(&Location::from_bucket_key(bucket, key)?)
    }

    /// Opens the object at `location`, whatever [`kinds`](RemoteOptions::kinds) says.
    ///
    /// # Errors
    /// As for [`open`](RemoteOptions::open).
    ///
    /// # Example: a name that no URL could hold as it is
    /// ```no_run
    /// use kvik_remote::{Location, RemoteHandle};
    ///
    /// let location = Location::from_base_path("https://example.org/data/", "100% sure?.bin")?;
    /// let object = RemoteHandle::builder().open_location(&location)?;
    /// # Ok::<(), kvik_core::Error>(())
    /// ```
    pub fn open_location(&self, location: &Location) -> Result<RemoteHandle> {
        outside_listeners(Op::Open).map_err(|error| error.at(&place_of(location)))?;
        let deadline = self.deadline();
        let prepared = self.prepare(location, &self.settings())?;
        if prepared.asks_nothing() {
            return Ok(prepared.into_handle(None));
        }
        let place = prepared.origin.place.clone();
        let opened = drive(within(self.timeout, deadline, prepared.open()));
        opened.flatten().map_err(|error| error.at(&place))
    }

    /// Starts to open the object at `url`. Nothing of it blocks the calling thread: files of settings are read elsewhere.
    ///
    /// The outcome is that of [`open`](RemoteOptions::open). The settings that hold are those of now, of the calling thread,
    /// and [`timeout`](RemoteOptions::timeout) begins now, too.
    pub fn submit_open(&self, url: &str) -> PendingOpen {
        match self.locate(url) {
            Ok(location) => self.submit_open_location(&location),
            Err(error) => PendingOpen::ended(Err(error)),
        }
    }

    /// Starts to open the object `key` of `bucket`, as [`open_bucket_key`](RemoteOptions::open_bucket_key) does.
    pub fn submit_open_bucket_key(&self, bucket: &str, key: &str) -> PendingOpen {
        match Location::from_bucket_key(bucket, key) {
            Ok(location) => self.submit_open_location(&location),
            Err(error) => PendingOpen::ended(Err(error)),
        }
    }

    /// Starts to open the object at `location`, as [`open_location`](RemoteOptions::open_location) does.
    pub fn submit_open_location(&self, location: &Location) -> PendingOpen {
        if let Err(error) = outside_listeners(Op::Open) {
            return PendingOpen::ended(Err(error.at(&place_of(location))));
        }
        let (options, location) = (self.clone(), location.clone());
        let (config, deadline) = (self.settings(), self.deadline());
        let (place, limit) = (place_of(&location), self.timeout);
        PendingOpen::start(async move {
            let opened = async move {
                let prepare = move || options.prepare(&location, &config);
                let prepared = tokio::task::spawn_blocking(prepare).await;
                let prepared = prepared.map_err(|cause| {
                    let why = "what opens the object has panicked";
                    Error::new(ErrorKind::Internal, Op::Open, why).because(cause)
                });
                prepared.flatten()?.open().await
            };
            let opened = within(limit, deadline, opened).await;
            opened.map_err(|error| error.at(&place))
        })
    }

    fn locate(&self, url: &str) -> Result<Location> {
        let kinds = self.kinds.as_deref().unwrap_or(&Kind::ALL);
        Location::parse_among(url, kinds)
    }

    fn settings(&self) -> Config {
        self.config.clone().unwrap_or_else(Config::current)
    }

    fn deadline(&self) -> Option<Instant> {
        Instant::now().checked_add(self.timeout?)
    }

    /// What needs no server, but may read files.
    fn prepare(&self, location: &Location, config: &Config) -> Result<Prepared> {
        let place = place_of(location);
        if let Some(error) = &self.wrong {
            return Err(error.clone().at(&place));
        }
        let origin = self.origin(location, config);
        let origin = origin.map_err(|error| error.at(&place))?;
        if self.https_only && !is_https(&origin, location) {
            let why = "it is asked for by http, and the options say https only";
            return Err(Error::new(ErrorKind::Misuse, Op::Open, why).at(&place));
        }
        Ok(Prepared {
            origin,
            kind: location.kind(),
            manner: Manner {
                timeout: self.timeout,
                concurrency: self.concurrency,
                part_size: self.part_size,
                config: self.config.clone(),
                pool: self.pool.clone(),
            },
            len: self.len,
            whole_limit: self.whole_limit.map_or(WHOLE, |size| size.bytes()),
        })
    }
}

impl Prepared {
    fn asks_nothing(&self) -> bool {
        self.len.is_some() && !matches!(self.origin.asker, Asker::Store(_))
    }

    async fn open(self) -> Result<RemoteHandle> {
        if let Asker::Store(store) = &self.origin.asker {
            store.prepare().await?;
        }
        let found = match self.len {
            Some(_) => None,
            None => Some(opening::open(&self.origin, self.whole_limit).await?),
        };
        Ok(self.into_handle(found))
    }

    fn into_handle(self, found: Option<opening::Found>) -> RemoteHandle {
        let kind = match &self.origin.asker {
            Asker::Store(store) if !store.is_signed() => Kind::S3Public,
            _ => self.kind,
        };
        let object = match found {
            Some(found) => Object::new(self.origin, found.len, found.head, Some(found.validator)),
            None => Object::new(
                self.origin,
                self.len.unwrap_or_default(),
                Bytes::new(),
                None,
            ),
        };
        RemoteHandle::new(object, kind, self.manner)
    }
}

fn place_of(location: &Location) -> Place {
    Place::Url(location.to_string().into())
}

fn is_https(origin: &Origin, location: &Location) -> bool {
    let address = match &origin.asker {
        Asker::Store(store) => store.address(),
        Asker::Plain(_) | Asker::Cluster(_) => location.to_string(),
    };
    let scheme = address.split(':').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("https")
}

/// The outcome of `work`, unless the deadline that `limit` has set comes first.
async fn within<T>(
    limit: Option<Duration>,
    deadline: Option<Instant>,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let (Some(limit), Some(deadline)) = (limit, deadline) else {
        return work.await;
    };
    let outcome = tokio::time::timeout_at(deadline.into(), work).await;
    outcome.unwrap_or_else(|_| {
        let why = format!("not open within {} s", limit.as_secs_f64());
        Err(Error::new(ErrorKind::TimedOut, Op::Open, why))
    })
}

pub(super) const WHOLE: u64 = 64 << 20;
