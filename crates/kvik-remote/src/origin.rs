//! Where an object comes from: one request for a range of it, redirects followed, its answer judged.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, IF_MATCH, RANGE, USER_AGENT};
use http::{HeaderMap, HeaderValue};
use kvik_core::corridor::PerProcess;
use kvik_core::{ErrorKind, Place};
use kvik_stats::names;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::Url;

use crate::failure::Failure;
use crate::redirect;
use crate::reply::{self, Answer, Known};
use crate::retry::{Budget, Policy};
use crate::transport::{Body, Client, ClientOptions, Reply, Request, Transport};
use crate::validator::Validator;

/// How to ask for an object. All clones of a handle share it.
pub(crate) struct Origin {
    pub(crate) url: Url,
    /// Meant for the origin of `url` alone: whatever the caller sends along may be a secret.
    pub(crate) headers: HeaderMap,
    pub(crate) client: ClientOptions,
    pub(crate) limits: Limits,
    pub(crate) policy: Policy,
    pub(crate) most_requests: usize,
    pub(crate) place: Place,
    pub(crate) name: Arc<str>,
    /// Where the server has sent us.
    pub(crate) moved: ArcSwapOption<Url>,
    pub(crate) shared: PerProcess<Shared>,
}

/// How long a server may be silent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) first_byte: Duration,
    pub(crate) idle: Duration,
}

/// What all requests of a handle share within one process.
pub(crate) struct Shared {
    transport: Arc<dyn Transport>,
    permits: Arc<Semaphore>,
    pub(crate) budget: Budget,
}

/// An answer that was judged, and its body.
pub(crate) struct Answered {
    pub(crate) answer: Answer,
    pub(crate) validator: Validator,
    body: Box<dyn Body>,
    idle: Duration,
    // As long as bytes may come, the request is under way.
    _permit: OwnedSemaphorePermit,
}

impl Origin {
    /// What requests of this process share.
    ///
    /// # Errors
    /// No client can be set up.
    pub(crate) fn shared(&self) -> Result<&Shared, Failure> {
        let made = self.shared.get_or_make(|| {
            let most = match self.most_requests {
                0 => Semaphore::MAX_PERMITS,
                most => most.min(Semaphore::MAX_PERMITS),
            };
            Ok::<_, kvik_core::Error>(Shared {
                transport: Client::shared(&self.client)?,
                permits: Arc::new(Semaphore::new(most)),
                budget: Budget::new(),
            })
        });
        made.map_err(|error| Failure::final_(ErrorKind::Internal, error.to_string()))
    }

    /// Asks for the bytes of `range`, or for all there are.
    pub(crate) async fn ask(
        &self,
        range: Option<&Range<u64>>,
        known: Known<'_>,
    ) -> Result<Answered, Failure> {
        let shared = self.shared()?;
        let permit = Arc::clone(&shared.permits).acquire_owned().await;
        let permit = permit.map_err(|_| Failure::final_(ErrorKind::Internal, "nobody asks"))?;
        let moved = self.moved.load_full();
        let mut remembered = moved.is_some();
        let mut url = moved.map_or_else(|| self.url.clone(), |moved| Url::clone(&moved));
        let mut hops = 0;
        loop {
            let reply = self.send(shared, &url, range, known).await?;
            if let Some(to) = redirect::target(reply.status, &reply.headers, &url)? {
                hops += 1;
                if hops > redirect::MOST {
                    let why = format!("the server sends us on more than {} times", redirect::MOST);
                    return Err(Failure::final_(ErrorKind::Refused, why));
                }
                names::HTTP_REDIRECTS.increment();
                url = to;
                continue;
            }
            let status = reply.status.as_u16();
            // A place that was good for a while: the server that sent us there may know the next one.
            if remembered && matches!(status, 401 | 403 | 404 | 410) {
                self.moved.store(None);
                (remembered, hops) = (false, 0);
                url = self.url.clone();
                continue;
            }
            if status >= 400 && !matches!(status, 412 | 416) {
                let now = SystemTime::now();
                return Err(reply::refusal(
                    reply.status,
                    &reply.headers,
                    &self.policy,
                    now,
                ));
            }
            let everything = 0..u64::MAX;
            let asked = range.unwrap_or(&everything);
            let answer = reply::judge(reply.status, &reply.headers, asked, known)?;
            if hops > 0 {
                self.moved.store(Some(Arc::new(url)));
            }
            shared.budget.earn();
            return Ok(Answered {
                answer,
                validator: Validator::of(&reply.headers),
                body: reply.body,
                idle: self.limits.idle,
                _permit: permit,
            });
        }
    }

    async fn send(
        &self,
        shared: &Shared,
        url: &Url,
        range: Option<&Range<u64>>,
        known: Known<'_>,
    ) -> Result<Reply, Failure> {
        let mut headers = match redirect::is_same_origin(&self.url, url) {
            true => self.headers.clone(),
            false => HeaderMap::new(),
        };
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(AGENT));
        if let Some(range) = range {
            let value = format!("bytes={}-{}", range.start, range.end - 1);
            let value = HeaderValue::try_from(value).expect("digits and a dash are a header value");
            headers.insert(RANGE, value);
        }
        if let Some(tag) = known.validator.and_then(Validator::strong) {
            headers.insert(IF_MATCH, tag.clone());
        }
        names::HTTP_REQUESTS.increment();
        let request = Request {
            url: url.clone(),
            headers,
        };
        let limit = self.limits.first_byte;
        match tokio::time::timeout(limit, shared.transport.send(request)).await {
            Ok(reply) => reply,
            Err(_) => Err(silence(limit)),
        }
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Origin({})", self.place)
    }
}

impl Answered {
    /// The next bytes of the body; `None` at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Failure> {
        match tokio::time::timeout(self.idle, self.body.chunk()).await {
            Ok(chunk) => chunk,
            Err(_) => Err(silence(self.idle)),
        }
    }

    /// Takes the end of a body of which all that counts is here, so that its connection is good for another request. What
    /// goes wrong now is no failure of this one, but for a body that does not end.
    pub(crate) async fn finish(mut self) -> Result<(), Failure> {
        match tokio::time::timeout(PARTING, self.body.chunk()).await {
            Ok(Ok(Some(more))) if !more.is_empty() => Err(Failure::too_long()),
            _ => Ok(()),
        }
    }
}

fn silence(limit: Duration) -> Failure {
    let why = format!("the server was silent for {} s", limit.as_secs_f64());
    Failure::passing(ErrorKind::TimedOut, why)
}

const AGENT: &str = concat!("kvik/", env!("CARGO_PKG_VERSION"));
// What ends a body comes with its last bytes as a rule; a new connection costs no more than this.
const PARTING: Duration = Duration::from_millis(20);
