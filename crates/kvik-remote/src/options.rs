//! What a caller may say when opening a remote object: [`RemoteOptions`].

mod diagnose;
mod hdfs;
mod named;
mod open;
mod s3;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, IF_MATCH, RANGE, TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use kvik_config::{ByteSize, Config, Key, Origin as Who, ProxyUrl};
use kvik_core::corridor::PerProcess;
use kvik_core::{Error, ErrorKind, Op, Place, Result, ThreadPool};

use crate::bearer::{AnyError, Bearer};
use crate::endpoint::{HttpEndpoint, PresignedEndpoint, authorization};
use crate::location::{Kind, Location, UserInfo};
use crate::origin::{Asker, Limits, Origin};
use crate::redact;
use crate::retry::Policy;
use crate::server::ServerName;
use crate::tls::Trust;
use crate::transport::{ClientOptions, Proxies};

use self::hdfs::HdfsWishes;
pub use self::named::NamedOption;
pub use self::s3::Anonymous;
use self::s3::S3Wishes;

/// How a remote object is opened and read. What is not said here the settings say, and their defaults.
///
/// # Example: with a token, within ten seconds a call
/// ```no_run
/// use std::time::Duration;
/// use kvik_remote::RemoteHandle;
///
/// let options = RemoteHandle::builder().bearer("the token").timeout(Duration::from_secs(10));
/// let object = options.open("https://example.org/weights.bin")?;
/// # Ok::<(), kvik_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is opened before `open` is called"]
pub struct RemoteOptions {
    kinds: Option<Vec<Kind>>,
    len: Option<u64>,
    headers: HeaderMap,
    bearer: Option<Bearer>,
    s3: S3Wishes,
    hdfs: HdfsWishes,
    wrong: Option<Error>,
    https_only: bool,
    ca_bundle: Option<PathBuf>,
    proxies: Option<Proxies>,
    connect_timeout: Option<Duration>,
    first_byte_timeout: Option<Duration>,
    idle_timeout: Option<Duration>,
    timeout: Option<Duration>,
    max_attempts: Option<u32>,
    backoff: Option<(Duration, Duration)>,
    concurrency: Option<usize>,
    part_size: Option<ByteSize>,
    whole_limit: Option<ByteSize>,
    config: Option<Config>,
    pool: Option<ThreadPool>,
}

impl RemoteOptions {
    /// Options that want nothing special.
    pub fn new() -> RemoteOptions {
        RemoteOptions::default()
    }

    /// The kinds of object that a URL may be, in the order in which it is tried for them; [`Kind::ALL`] unless said
    /// otherwise. With a single one, it is that or an error.
    pub fn kinds(mut self, kinds: &[Kind]) -> RemoteOptions {
        self.kinds = Some(kinds.to_owned());
        self
    }

    /// The size in bytes, as the caller knows it: nothing is asked when the object is opened. A server that says another one
    /// later has changed it.
    pub fn len(mut self, bytes: u64) -> RemoteOptions {
        self.len = Some(bytes);
        self
    }

    /// A header of every request. It is a secret as far as kvik knows: it goes to the origin of the URL alone (scheme, host
    /// and port), wherever that sends us, and no text shows it. Who asks is said by the last word: `authorization` takes the place
    /// of tokens and passwords that were given before, and they of it.
    pub fn header(mut self, name: &str, value: &str) -> RemoteOptions {
        match header(name, value) {
            Ok((name, value)) if name == AUTHORIZATION => {
                self.bearer = None;
                self.headers.insert(name, value);
            }
            Ok((name, value)) => drop(self.headers.append(name, value)),
            Err(error) => drop(self.wrong.get_or_insert(error)),
        }
        self
    }

    /// A bearer token.
    pub fn bearer(self, token: &str) -> RemoteOptions {
        self.authorize(authorization::bearer(token))
    }

    /// A function that gives bearer tokens. It is called before the first request, and again, once for each request, when a
    /// server refuses the last token with status 401; many requests that need another one wait for the same call. It may
    /// block. Handles that were opened by clones of these options share its tokens.
    ///
    /// Its error ends what needed the token, with the kind `PermissionDenied`, or with its own if it is a
    /// [`kvik_core::Error`].
    ///
    /// # Example: a token from a file that somebody else keeps fresh
    /// ```no_run
    /// use kvik_remote::RemoteHandle;
    ///
    /// let options = RemoteHandle::builder()
    ///     .bearer_from(|| std::fs::read_to_string("/run/token").map(|text| text.trim().to_owned()));
    /// let object = options.open("https://example.org/weights.bin")?;
    /// # Ok::<(), kvik_core::Error>(())
    /// ```
    pub fn bearer_from<E: Into<AnyError>>(
        mut self,
        give: impl Fn() -> Result<String, E> + Send + Sync + 'static,
    ) -> RemoteOptions {
        self.headers.remove(AUTHORIZATION);
        self.bearer = Some(Bearer::new(move || give().map_err(Into::into)));
        self
    }

    /// A name and a password, by basic authentication.
    pub fn basic_auth(self, name: &str, password: &str) -> RemoteOptions {
        let user = UserInfo {
            user: name.to_owned(),
            password: password.to_owned(),
        };
        self.authorize(authorization::basic(&user))
    }

    /// The file with the certificates, in PEM, that the server must prove itself by, in place of all others.
    pub fn ca_bundle(mut self, path: impl AsRef<Path>) -> RemoteOptions {
        self.ca_bundle = Some(path.as_ref().to_owned());
        self
    }

    /// The proxy by which all is asked for, whatever the settings `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` say:
    /// `http://[NAME[:PASSWORD]@]HOST[:PORT]`, or by `https`; no text shows name and password. `none` is for no proxy.
    pub fn proxy(mut self, url: &str) -> RemoteOptions {
        let proxies = match url.trim() {
            "none" => Ok(Proxies::default()),
            url => Proxies::by_caller(&ProxyUrl::new(url)),
        };
        match proxies {
            Ok(proxies) => self.proxies = Some(proxies),
            Err(failure) => {
                self.wrong.get_or_insert(failure.into_error(Op::Open, 1));
            }
        }
        self
    }

    /// Whether an object is to be asked for by TLS alone: an `http` URL, or a store by one, is an error then. Redirects never lead
    /// from `https` to `http`, whatever is said here.
    pub fn https_only(mut self, only: bool) -> RemoteOptions {
        self.https_only = only;
        self
    }

    /// How long a connection may take to be there; 10 seconds unless said otherwise.
    pub fn connect_timeout(mut self, limit: Duration) -> RemoteOptions {
        self.connect_timeout = Some(limit);
        self
    }

    /// How long an answer may take to begin, from when the request is made; the setting `http_timeout` unless said
    /// otherwise.
    pub fn first_byte_timeout(mut self, limit: Duration) -> RemoteOptions {
        self.first_byte_timeout = Some(limit);
        self
    }

    /// How long nothing may come in the midst of an answer; the setting `http_timeout` unless said otherwise. An answer that
    /// is slow and goes on takes as long as it takes.
    pub fn idle_timeout(mut self, limit: Duration) -> RemoteOptions {
        self.idle_timeout = Some(limit);
        self
    }

    /// How long a call may take, with all that is tried again; there is no limit unless one is said here or with the call.
    pub fn timeout(mut self, limit: Duration) -> RemoteOptions {
        self.timeout = Some(limit);
        self
    }

    /// How many requests in a row may fail without having brought anything; the setting `http_max_attempts` unless said
    /// otherwise.
    pub fn max_attempts(mut self, count: u32) -> RemoteOptions {
        self.max_attempts = Some(count);
        self
    }

    /// The longest first wait before a request is made again, and the longest of all; each may be twice as long as the one
    /// before. 100 milliseconds and 10 seconds unless said otherwise. A server that names a time is given it.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> RemoteOptions {
        self.backoff = Some((first, longest));
        self
    }

    /// How many requests a call has under way at a time. Unless said otherwise these are 16 at first, and twice as many up to
    /// 128 where that turns out to bring clearly more. A call that says its
    /// [`num_threads`](kvik_core::ReadOptions::num_threads) has no more than those.
    pub fn concurrency(mut self, requests: usize) -> RemoteOptions {
        self.concurrency = Some(requests);
        self
    }

    /// The largest piece that one request asks for. Unless said otherwise it is the setting `task_size`, or less where a read
    /// would be too few pieces for all requests.
    pub fn part_size(mut self, size: ByteSize) -> RemoteOptions {
        self.part_size = Some(size);
        self
    }

    /// The longest object that is fetched as a whole and kept in memory where the server sends no ranges; 64 MiB unless said
    /// otherwise.
    pub fn whole_limit(mut self, size: ByteSize) -> RemoteOptions {
        self.whole_limit = Some(size);
        self
    }

    /// The settings of the handle. Without this each call follows [`Config::current`].
    pub fn config(mut self, config: &Config) -> RemoteOptions {
        self.config = Some(config.clone());
        self
    }

    /// The pool whose workers put the bytes where they belong, in place of one that all remote handles share.
    pub fn pool(mut self, pool: &ThreadPool) -> RemoteOptions {
        self.pool = Some(pool.clone());
        self
    }

    fn origin(&self, location: &Location, config: &Config) -> Result<Origin> {
        let mut trust = match &self.ca_bundle {
            Some(path) => Trust::in_file(path),
            None => Trust::of(config)?,
        };
        if self.bearer.is_some() && !matches!(location.kind(), Kind::Http | Kind::WebHdfs) {
            let why = "a bearer token is none for S3, which is asked with keys, or by a URL that says who asks";
            return Err(Error::new(ErrorKind::Misuse, Op::Open, why));
        }
        let asker = match location.kind() {
            Kind::Http => Asker::Plain(Box::new(HttpEndpoint::new(location, &self.headers)?)),
            Kind::S3Presigned => {
                Asker::Plain(Box::new(PresignedEndpoint::new(location, &self.headers)?))
            }
            Kind::S3 | Kind::S3Public => Asker::Store(Box::new(self.store(location, &mut trust)?)),
            Kind::WebHdfs => Asker::Cluster(Box::new(self.cluster(location, config)?)),
        };
        let silence = config.http_timeout()?;
        let (first_wait, longest_wait) = self.backoff.unwrap_or(BACKOFF);
        let attempts = match self.max_attempts {
            Some(attempts) => attempts,
            None => u32::try_from(config.http_max_attempts()?).unwrap_or(u32::MAX),
        };
        let statuses = match config.origin(Key::HttpStatusCodes) {
            Who::Default => None,
            _ => Some(config.http_status_codes()?),
        };
        let proxies = match &self.proxies {
            Some(proxies) => proxies.clone(),
            None => Proxies::of(config)?,
        };
        let mut secrets = location.secrets();
        secrets.extend(self.hdfs_secrets());
        secrets.extend(proxies.secrets());
        secrets.extend(redact::secrets_of_headers(&self.headers));
        let name: Arc<str> = location.to_string().into();
        Ok(Origin {
            asker,
            bearer: self.bearer.clone(),
            secrets,
            client: ClientOptions {
                trust,
                proxies,
                connect_timeout: self.connect_timeout.unwrap_or(CONNECT),
            },
            limits: Limits {
                first_byte: self.first_byte_timeout.unwrap_or(silence),
                idle: self.idle_timeout.unwrap_or(silence),
            },
            policy: Policy {
                attempts,
                first_wait,
                longest_wait,
                statuses,
            },
            most_requests: config.remote_io_max_concurrent_requests()?,
            place: Place::Url(Arc::clone(&name)),
            name,
            server: ServerName::default(),
            moved: ArcSwapOption::empty(),
            shared: PerProcess::new(),
        })
    }

    fn authorize(mut self, value: Result<HeaderValue>) -> RemoteOptions {
        self.bearer = None;
        match value {
            Ok(value) => drop(self.headers.insert(AUTHORIZATION, value)),
            Err(error) => drop(self.wrong.get_or_insert(error)),
        }
        self
    }
}

/// A header, whose value no text shows.
fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue)> {
    let wrong = |why: &'static str| Error::new(ErrorKind::Misuse, Op::Open, why);
    let name = HeaderName::try_from(name).map_err(|_| wrong("the name of a header is none"))?;
    let own = [
        RANGE,
        IF_MATCH,
        ACCEPT_ENCODING,
        CONTENT_LENGTH,
        TRANSFER_ENCODING,
    ];
    if own.contains(&name) {
        return Err(wrong("a header was given that each request has to choose"));
    }
    let mut value =
        HeaderValue::try_from(value).map_err(|_| wrong("the value of a header is none"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

const CONNECT: Duration = Duration::from_secs(10);
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
