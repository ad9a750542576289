//! Where an object comes from: one request for a range of it, redirects followed, its answer judged.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use http::HeaderValue;
use http::header::{ACCEPT_ENCODING, IF_MATCH, LOCATION, RANGE, USER_AGENT};
use kvik_core::corridor::PerProcess;
use kvik_core::{ErrorKind, Place};
use kvik_stats::{Backend, Counter, names};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use url::Url;

use crate::bearer::Bearer;
use crate::cause::Cause;
use crate::cluster::Cluster;
use crate::crowd::{Admission, Crowd};
use crate::endpoint::{self, Ask, Endpoint, Moment};
use crate::failure::{Again, Failure};
use crate::redact;
use crate::redirect;
use crate::reply::{self, Answer, Known};
use crate::retry::{Budget, Policy};
use crate::server::ServerName;
use crate::store::{Refused, Store, Tried};
use crate::transport::{
    Body, Client, ClientOptions, Connecting, Reply, Request, Soon, Transport, body_within,
};
use crate::validator::Validator;
use crate::width::Width;

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
    pub(crate) server: ServerName,
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
    /// By what was learnt of the nodes of a cluster.
    Cluster(Box<Cluster>),
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
    width: Mutex<Width>,
    // What it says: each read asks for it.
    requests: AtomicUsize,
}

/// An answer that was judged, and its body.
pub(crate) struct Answered {
    pub(crate) answer: Answer,
    pub(crate) validator: Validator,
    /// Who sends the body, as its cluster calls it; for a file of HDFS only.
    pub(crate) data_node: Option<Url>,
    body: Box<dyn Body>,
    idle: Duration,
    // As long as bytes may come, the request is under way.
    _permit: OwnedSemaphorePermit,
}

impl Origin {
    /// What requests of this process share.
    pub(crate) fn shared(&self) -> &Shared {
        self.shared_over(|client| client)
    }

    /// The same, and where nothing was shared by now, over what `wrap` makes of the client.
    pub(crate) fn shared_over(
        &self,
        wrap: impl FnOnce(Arc<dyn Transport>) -> Arc<dyn Transport>,
    ) -> &Shared {
        self.shared.get_or(|| {
            let most = match self.most_requests {
                0 => Semaphore::MAX_PERMITS,
                most => most.min(Semaphore::MAX_PERMITS),
            };
            let width = Width::new();
            Shared {
                transport: wrap(Client::shared(&self.client)),
                permits: Arc::new(Semaphore::new(most)),
                budget: Budget::new(),
                requests: AtomicUsize::new(width.requests()),
                width: Mutex::new(width),
            }
        })
    }

    /// How many requests a read has under way, where nobody has said it.
    pub(crate) fn requests(&self) -> usize {
        self.shared().requests.load(Ordering::Relaxed)
    }

    /// Learns from what so many requests brought; returns how many there are to be from now on.
    pub(crate) fn learn(&self, requests: usize, bytes: u64, time: Duration) -> usize {
        let shared = self.shared();
        let mut width = shared.width();
        width.note(requests, bytes, time);
        let requests = width.requests();
        shared.requests.store(requests, Ordering::Relaxed);
        requests
    }

    /// Under which name what it brings is counted.
    pub(crate) fn backend(&self) -> Backend {
        match &self.asker {
            Asker::Plain(_) | Asker::Store(_) => Backend::RemoteHttp,
            Asker::Cluster(_) => Backend::RemoteHdfs,
        }
    }

    /// What it is called where pieces are told of one by one.
    pub(crate) fn engine(&self) -> &'static str {
        match &self.asker {
            Asker::Plain(_) => "http",
            Asker::Store(_) => "s3",
            Asker::Cluster(_) => "webhdfs",
        }
    }

    /// Where its bytes are counted.
    pub(crate) fn bytes(&self) -> &'static Counter {
        match &self.asker {
            Asker::Plain(_) => &names::BYTES_BY_HTTP,
            Asker::Store(_) => &names::BYTES_BY_S3,
            Asker::Cluster(_) => &names::BYTES_BY_WEBHDFS,
        }
    }

    /// Asks for the bytes of `range`, or for all there are: where the server has sent us before, if it has. A place that does
    /// not answer as it should is forgotten, since the server that sent us there may know the next one.
    pub(crate) async fn ask(
        &self,
        range: Option<&Range<u64>>,
        known: Known<'_>,
    ) -> Result<Answered, Failure> {
        let shared = self.shared();
        let permit = self.permit().await?;
        if let (Asker::Cluster(cluster), Some(range), Some(len)) = (&self.asker, range, known.len) {
            let asked = cluster.ask(self, range, len).await;
            let (reply, answer, data_node) = asked.map_err(|failure| {
                // A name node names hosts, too.
                let why = redact::hide(&failure.why, &self.secrets_of_caller());
                failure.saying(why)
            })?;
            shared.budget.earn();
            return Ok(Answered {
                answer,
                validator: Validator::of(&reply.headers),
                data_node,
                body: reply.body,
                idle: self.limits.idle,
                _permit: permit,
            });
        }
        if let Asker::Store(store) = &self.asker {
            let kept = store.keep_fresh(SystemTime::now()).await;
            kept.map_err(Failure::of)?;
        }
        let mut token = self.token(None).await?;
        let moved = self.moved.load_full();
        let place = moved.as_deref();
        let mut judged = self.follow(shared, range, known, &mut token, place).await;
        if let (Some(place), Err(failure)) = (&moved, &judged) {
            self.forget(place);
            // Who names a time is given it, and the server is asked after that.
            if !matches!(failure.again, Again::After(_)) {
                judged = self.follow(shared, range, known, &mut token, None).await;
            }
        }
        let (answer, validator, body) = judged?;
        shared.budget.earn();
        Ok(Answered {
            answer,
            validator,
            data_node: None,
            body,
            idle: self.limits.idle,
            _permit: permit,
        })
    }

    /// Goes where the server sends us, from `moved` on or else from the start, up to an answer.
    async fn follow(
        &self,
        shared: &Shared,
        range: Option<&Range<u64>>,
        known: Known<'_>,
        token: &mut Option<Arc<String>>,
        moved: Option<&Url>,
    ) -> Result<(Answer, Validator, Box<dyn Body>), Failure> {
        let mut tried = Tried::default();
        let mut may_renew = true;
        let mut first = self.request(range, known, token.as_deref(), &mut tried)?;
        let mut url = moved.unwrap_or(&first.url).clone();
        let mut hops = 0;
        loop {
            let mut reply = match self.send(shared, first.to(&url)).await {
                Ok(reply) => reply,
                Err(failure) => return Err(self.clean(tried.or(failure), &first, &url)),
            };
            let status = reply.status.as_u16();
            let refuses = matches!(status, 300..=399) || is_refusal(status);
            let direct = hops == 0 && moved.is_none();
            if let (Asker::Store(store), true) = (&self.asker, direct && refuses) {
                let cause = self.cause(&mut reply, &first, &url).await;
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
                    return Err(self.clean(tried.or(failure()), &first, &url));
                }
            }
            if let (401, Some(refused)) = (status, token.clone())
                && redirect::is_same_origin(&first.url, &url)
                && std::mem::take(&mut may_renew)
            {
                *token = self.token(Some(&refused)).await?;
                if token.as_ref() != Some(&refused) {
                    first = self.request(range, known, token.as_deref(), &mut tried)?;
                    continue;
                }
            }
            if let Some(to) = redirect::target(reply.status, &reply.headers, &url)? {
                hops += 1;
                if hops > redirect::MOST {
                    return Err(redirect::too_many());
                }
                names::HTTP_REDIRECTS.increment();
                url = to;
                continue;
            }
            if is_refusal(status) {
                let cause = self.cause(&mut reply, &first, &url).await;
                return Err(self.clean(self.refusal(&reply, &cause), &first, &url));
            }
            self.server
                .meet(&reply.headers, || self.secrets(&first, &url));
            let everything = 0..u64::MAX;
            let asked = range.unwrap_or(&everything);
            let answer = reply::judge(reply.status, &reply.headers, asked, known)
                .map_err(|failure| self.clean(failure, &first, &url))?;
            if let (Asker::Store(store), true) = (&self.asker, direct) {
                store.accepts(&tried);
            }
            let mut validator = Validator::of(&reply.headers);
            if known.validator.is_none() {
                // This is the one that is kept.
                validator = validator.hiding(&self.secrets(&first, &url));
            }
            if hops > 0 {
                self.moved.store(Some(Arc::new(url)));
            }
            return Ok((answer, validator, reply.body));
        }
    }

    /// Does not go to `place` any more, unless there is another one by now.
    fn forget(&self, place: &Arc<Url>) {
        let nowhere: Option<Arc<Url>> = None;
        self.moved
            .compare_and_swap(&Some(Arc::clone(place)), nowhere);
        names::HTTP_REDIRECTS_FORGOTTEN.increment();
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
            Asker::Cluster(_) => {
                let why = "a file of HDFS is asked for without its length";
                return Err(Failure::lasting(ErrorKind::Internal, why));
            }
        };
        let mut request = made.and_then(outgoing).map_err(Failure::of)?;
        if let Some(tag) = known.validator.and_then(Validator::strong) {
            request.headers.insert(IF_MATCH, tag.clone());
        }
        Ok(request)
    }

    /// The bearer token to go with a request, if a function gives such: another one than that which a server has `refused`,
    /// where there is another.
    pub(crate) async fn token(
        &self,
        refused: Option<&Arc<String>>,
    ) -> Result<Option<Arc<String>>, Failure> {
        let Some(bearer) = &self.bearer else {
            return Ok(None);
        };
        let token = match refused {
            None => bearer.token().await,
            Some(refused) => bearer.after(refused).await,
        };
        token.map(Some).map_err(Failure::of)
    }

    /// Waits until another request may be under way.
    pub(crate) async fn permit(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let permits = Arc::clone(&self.shared().permits);
        let permit = permits.acquire_owned().await;
        permit.map_err(|_| Failure::lasting(ErrorKind::Internal, "nobody asks"))
    }

    pub(crate) async fn send(&self, shared: &Shared, request: Request) -> Result<Reply, Failure> {
        // Before the clock runs: a server is not silent that was not asked.
        let admission = Crowd::of(&request.url).enter().await?;
        names::HTTP_REQUESTS.increment();
        let limit = self.limits.first_byte;
        let connection = Connecting::default();
        let sent = connection.watch(shared.transport.send(request));
        let sent = tokio::time::timeout(limit, sent);
        let outcome = sent.await.unwrap_or_else(|_| Err(silence(limit)));
        match &outcome {
            Ok(reply) if matches!(reply.status.as_u16(), 429 | 503) => admission.too_many(),
            Ok(_) => admission.answered(),
            Err(failure) => match failure.kind {
                ErrorKind::TimedOut | ErrorKind::Unreachable if connection.lacks() => {
                    admission.unconnected(failure);
                }
                ErrorKind::TimedOut => admission.silent(failure),
                // A connection that breaks says nothing of how many may ask.
                _ => {}
            },
        }
        let reply = outcome?;
        if !reply.status.is_success() {
            // What comes with a refusal is short; and where it sends us on, perhaps to the same host, the next request is not
            // to wait for this one, or all of them would wait for each other.
            return Ok(reply);
        }
        Ok(Reply {
            body: Box::new(UnderWay {
                body: reply.body,
                _admission: admission,
            }),
            ..reply
        })
    }

    /// The reason that an answer to `request`, which went to `url`, gives in its body.
    async fn cause(&self, reply: &mut Reply, request: &Request, url: &Url) -> Cause {
        let is_s3 = matches!(self.asker, Asker::Store(_));
        if !is_s3 && !reply::is_xml(&reply.headers) {
            return Cause::default();
        }
        let secrets = self.secrets(request, url);
        let body = self.reason(reply).await;
        Cause::of_s3(&body, &secrets).or_headers(&reply.headers, &secrets)
    }

    /// What of them the caller gave.
    fn secrets_of_caller(&self) -> Vec<String> {
        let tokens = self.bearer.iter().flat_map(Bearer::secrets);
        self.secrets.iter().cloned().chain(tokens).collect()
    }

    /// What no text may show, even where the server says it that answered to `request` at `url`.
    pub(crate) fn secrets(&self, request: &Request, url: &Url) -> Vec<String> {
        let mut secrets = self.secrets_of_caller();
        if let Asker::Store(store) = &self.asker {
            secrets.extend(store.secrets());
        }
        secrets.extend(redact::secrets_of_headers(&request.headers));
        let moved = self.moved.load();
        let urls = [Some(&request.url), Some(url), moved.as_deref()];
        let queries = urls.into_iter().flatten().filter_map(Url::query);
        secrets.extend(queries.flat_map(redact::secrets_of_query));
        secrets
    }

    /// The failure without what its text must not show: parts of it are the server's own words.
    fn clean(&self, failure: Failure, request: &Request, url: &Url) -> Failure {
        let why = redact::hide(&failure.why, &self.secrets(request, url));
        failure.saying(why)
    }

    /// As much of a body that explains a refusal as comes in time.
    pub(crate) async fn reason(&self, reply: &mut Reply) -> Vec<u8> {
        body_within(&mut *reply.body, LONGEST_REASON, PATIENCE).await
    }

    /// The next bytes of a body; `None` at its end.
    pub(crate) async fn chunk_of(&self, body: &mut dyn Body) -> Result<Option<Bytes>, Failure> {
        chunk_within(self.limits.idle, body).await
    }

    /// What an answer that says that something is wrong means.
    pub(crate) fn refusal(&self, reply: &Reply, cause: &Cause) -> Failure {
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

impl Shared {
    fn width(&self) -> MutexGuard<'_, Width> {
        self.width.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Request {
    /// The same to another place: what is meant for its own origin stays behind if that is another one.
    pub(crate) fn to(&self, url: &Url) -> Request {
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

/// A body; as long as it may come, its request is under way.
struct UnderWay {
    body: Box<dyn Body>,
    _admission: Admission,
}

impl Body for UnderWay {
    fn chunk(&mut self) -> Soon<'_, Result<Option<Bytes>, Failure>> {
        self.body.chunk()
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
        chunk_within(self.idle, &mut *self.body).await
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

/// The request of an endpoint as it goes out, with what all of them say.
pub(crate) fn outgoing(made: endpoint::Request) -> kvik_core::Result<Request> {
    let url = made.to_url()?;
    let mut headers = made.headers;
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers
        .entry(USER_AGENT)
        .or_insert(HeaderValue::from_static(AGENT));
    Ok(Request { url, headers })
}

async fn chunk_within(idle: Duration, body: &mut dyn Body) -> Result<Option<Bytes>, Failure> {
    match tokio::time::timeout(idle, body.chunk()).await {
        Ok(chunk) => chunk,
        Err(_) => Err(silence(idle)),
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
