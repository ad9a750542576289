//! Where an object comes from: one request for a range of it, redirects followed, its answer judged.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::HeaderValue;
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, IF_MATCH, LOCATION, RANGE, USER_AGENT};
use kvik_core::corridor::PerProcess;
use kvik_core::{ErrorKind, Place};
use kvik_stats::names;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::Url;

use crate::bearer::Bearer;
use crate::cause::Cause;
use crate::endpoint::{Ask, Endpoint, Moment};
use crate::failure::{Again, Failure};
use crate::redirect;
use crate::reply::{self, Answer, Known};
use crate::retry::{Budget, Policy};
use crate::store::{Refused, Store, Tried};
use crate::transport::{Body, Client, ClientOptions, Reply, Request, Transport, body_within};
use crate::validator::Validator;

/// How to ask for an object. All clones of a handle share it.
pub(crate) struct Origin {
    /// Makes the requests. Their headers are meant for the origin of their URL alone: whatever the caller sends along may
    /// be a secret.
    pub(crate) asker: Asker,
    /// Gives the bearer tokens, where the caller has a function for it.
    pub(crate) bearer: Option<Bearer>,
    /// What no text may show, even where a server says it.
    pub(crate) secrets: Vec<String>,
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

/// What makes the requests.
#[derive(Debug)]
pub(crate) enum Asker {
    /// Each by itself.
    Plain(Box<dyn Endpoint>),
    /// By what was learnt from answers to earlier ones.
    Store(Box<Store>),
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
        made.map_err(Failure::of)
    }

    /// Asks for the bytes of `range`, or for all there are.
    pub(crate) async fn ask(
        &self,
        range: Option<&Range<u64>>,
        known: Known<'_>,
    ) -> Result<Answered, Failure> {
        let shared = self.shared()?;
        let permit = Arc::clone(&shared.permits).acquire_owned().await;
        let permit = permit.map_err(|_| Failure::lasting(ErrorKind::Internal, "nobody asks"))?;
        let moved = self.moved.load_full();
        let mut remembered = moved.is_some();
        if let Asker::Store(store) = &self.asker {
            let kept = store.keep_fresh(SystemTime::now()).await;
            kept.map_err(Failure::of)?;
        }
        let mut tried = Tried::default();
        let mut token = match &self.bearer {
            Some(bearer) => Some(bearer.token().await.map_err(Failure::of)?),
            None => None,
        };
        let mut may_renew = true;
        let mut first = self.request(range, known, token.as_deref(), &mut tried)?;
        let mut url = moved.map_or_else(|| first.url.clone(), |moved| Url::clone(&moved));
        let mut hops = 0;
        loop {
            let mut reply = match self.send(shared, first.to(&url)).await {
                Ok(reply) => reply,
                Err(failure) => return Err(tried.or(failure)),
            };
            let status = reply.status.as_u16();
            let refuses = matches!(status, 300..=399) || is_refusal(status);
            let direct = hops == 0 && !remembered;
            if let (Asker::Store(store), true) = (&self.asker, direct && refuses) {
                let cause = self.cause(&mut reply).await;
                let answer = Refused {
                    status,
                    headers: &reply.headers,
                    cause: &cause,
                };
                let mut again = store.learns(&answer, &mut tried).await;
                let failure = || self.refusal(&reply, &cause);
                if !again && store.may_be_elsewhere(&answer, &tried) {
                    tried.otherwise(failure());
                    again = true;
                }
                if again {
                    first = self.request(range, known, token.as_deref(), &mut tried)?;
                    url = first.url.clone();
                    continue;
                }
                if !reply.headers.contains_key(LOCATION) || is_refusal(status) {
                    return Err(tried.or(failure()));
                }
            }
            if let (401, Some(bearer), Some(refused)) = (status, &self.bearer, &token)
                && redirect::is_same_origin(&first.url, &url)
                && std::mem::take(&mut may_renew)
            {
                let next = bearer.after(refused).await.map_err(Failure::of)?;
                if next != *refused {
                    token = Some(next);
                    first = self.request(range, known, token.as_deref(), &mut tried)?;
                    continue;
                }
            }
            if let Some(to) = redirect::target(reply.status, &reply.headers, &url)? {
                hops += 1;
                if hops > redirect::MOST {
                    let why = format!("the server sends us on more than {} times", redirect::MOST);
                    return Err(Failure::lasting(ErrorKind::Refused, why));
                }
                names::HTTP_REDIRECTS.increment();
                url = to;
                continue;
            }
            // A place that was good for a while: the server that sent us there may know the next one.
            if remembered && matches!(status, 401 | 403 | 404 | 410) {
                self.moved.store(None);
                (remembered, hops) = (false, 0);
                url = first.url.clone();
                continue;
            }
            if is_refusal(status) {
                let cause = self.cause(&mut reply).await;
                return Err(self.refusal(&reply, &cause));
            }
            let everything = 0..u64::MAX;
            let asked = range.unwrap_or(&everything);
            let answer = reply::judge(reply.status, &reply.headers, asked, known)?;
            if let (Asker::Store(store), true) = (&self.asker, direct) {
                store.accepts(&tried);
            }
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

    /// The request, as it goes out to where the object is known to be.
    fn request(
        &self,
        range: Option<&Range<u64>>,
        known: Known<'_>,
        bearer: Option<&String>,
        tried: &mut Tried,
    ) -> Result<Request, Failure> {
        let ask = match range {
            Some(range) => Ask::Range(range.clone()),
            None => Ask::Whole,
        };
        let now = SystemTime::now();
        let made = match &self.asker {
            Asker::Plain(endpoint) => {
                let bearer = bearer.map(String::as_str);
                let moment = Moment {
                    bearer,
                    ..Moment::at(now)
                };
                endpoint.request(&ask, &moment)
            }
            Asker::Store(store) => store.request(&ask, now, tried),
        };
        let made = made.and_then(|request| Ok((request.to_url()?, request.headers)));
        let (url, mut headers) = made.map_err(Failure::of)?;
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers
            .entry(USER_AGENT)
            .or_insert(HeaderValue::from_static(AGENT));
        if let Some(tag) = known.validator.and_then(Validator::strong) {
            headers.insert(IF_MATCH, tag.clone());
        }
        Ok(Request { url, headers })
    }

    async fn send(&self, shared: &Shared, request: Request) -> Result<Reply, Failure> {
        names::HTTP_REQUESTS.increment();
        let limit = self.limits.first_byte;
        match tokio::time::timeout(limit, shared.transport.send(request)).await {
            Ok(reply) => reply,
            Err(_) => Err(silence(limit)),
        }
    }

    /// The reason that an answer gives in its body.
    async fn cause(&self, reply: &mut Reply) -> Cause {
        let kind = reply.headers.get(CONTENT_TYPE);
        let is_xml = kind.is_some_and(|kind| kind.as_bytes().ends_with(b"xml"));
        let mut secrets = self.secrets.clone();
        secrets.extend(self.bearer.iter().flat_map(Bearer::secrets));
        match &self.asker {
            Asker::Store(store) => secrets.extend(store.secrets()),
            Asker::Plain(_) if !is_xml => return Cause::default(),
            Asker::Plain(_) => {}
        }
        let body = body_within(&mut *reply.body, LONGEST_REASON, PATIENCE).await;
        Cause::of_s3(&body, &secrets).or_headers(&reply.headers, &secrets)
    }

    /// What an answer that says that something is wrong means.
    fn refusal(&self, reply: &Reply, cause: &Cause) -> Failure {
        let (status, now) = (reply.status, SystemTime::now());
        let mut failure = reply::refusal(status, &reply.headers, &self.policy, now);
        if !cause.is_empty() {
            failure.why = format!("{}: {cause}", failure.why);
            failure.kind = cause.kind(status.as_u16());
        }
        if let Asker::Store(store) = &self.asker {
            if failure.again == Again::Never && cause.passes() {
                failure.again = Again::Soon;
            }
            if failure.kind == ErrorKind::PermissionDenied {
                failure.why = format!("{}; {}", failure.why, store.who());
            }
        }
        failure
    }
}

/// Whether the status says that something is wrong, and not what is known of the object.
fn is_refusal(status: u16) -> bool {
    status >= 400 && !matches!(status, 412 | 416)
}

impl Request {
    /// The same to another place: what is meant for its own origin stays behind if that is another one.
    fn to(&self, url: &Url) -> Request {
        let mut headers = self.headers.clone();
        if !redirect::is_same_origin(&self.url, url) {
            headers.clear();
            for name in [ACCEPT_ENCODING, IF_MATCH, RANGE] {
                if let Some(value) = self.headers.get(&name) {
                    headers.insert(name, value.clone());
                }
            }
            headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        }
        Request {
            url: url.clone(),
            headers,
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

// Beyond this nobody explains a refusal, and the reason is not waited for longer than this.
const LONGEST_REASON: usize = 64 << 10;
const PATIENCE: Duration = Duration::from_secs(1);
const AGENT: &str = concat!("kvik/", env!("CARGO_PKG_VERSION"));
// What ends a body comes with its last bytes as a rule; a new connection costs no more than this.
const PARTING: Duration = Duration::from_millis(20);
