//! A file of HDFS as it is asked for: by name nodes, one of which is the active one, and by the data nodes that it names.
//! Which of them answered is remembered, as is which data node has which block.

mod data_names;
mod judge;
mod places;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use kvik_core::{ErrorKind, Result};
use kvik_stats::names;
use url::Url;

pub(crate) use data_names::DataNodeNames;

use self::places::Places;
use crate::cause::Cause;
use crate::endpoint::{Ask, Endpoint, FileStatus, Moment, WebHdfsEndpoint};
use crate::failure::{Again, Failure};
use crate::latest::{Found, Latest};
use crate::origin::{Origin, outgoing};
use crate::redirect;
use crate::reply::Answer;
use crate::transport::{Body, Reply, Request};

/// A file of HDFS, and what was learnt of its cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// The file as each name node has it; at least one.
    name_nodes: Vec<WebHdfsEndpoint>,
    /// Which of them was the active one.
    active: AtomicUsize,
    names: DataNodeNames,
    places: Places,
    status: Latest<Result<FileStatus, Failure>>,
}

impl Cluster {
    /// The file that any of `name_nodes` is asked for.
    pub(crate) fn new(name_nodes: Vec<WebHdfsEndpoint>, names: DataNodeNames) -> Cluster {
        Cluster {
            name_nodes,
            active: AtomicUsize::new(0),
            names,
            places: Places::new(),
            status: Latest::new(),
        }
    }

    /// What a name node says of the file: asked after this was called, and once for all who call it meanwhile.
    pub(crate) async fn status(&self, origin: &Origin) -> Result<FileStatus, Failure> {
        let mut turn = match self.status.after_now().await {
            Found::Answer(status) => return status,
            Found::Turn(turn) => turn,
        };
        let status = match origin.permit().await {
            Ok(_permit) => self.ask_status(origin).await,
            Err(failure) => Err(failure),
        };
        turn.answer(status.clone());
        status
    }

    /// Asks for the bytes of `range`, which lies within the file: the data node that has their block, where it is known
    /// and answers, else the one that the name node names. Returned with the answer is the data node that gave it, unless a
    /// gateway did.
    pub(crate) async fn ask(
        &self,
        origin: &Origin,
        range: &Range<u64>,
        len: u64,
    ) -> Result<(Reply, Answer, Option<Url>), Failure> {
        let ask = Ask::Range(range.clone());
        if let Some(place) = self.places.of(range) {
            let token = origin.token(None).await?;
            let active = self.active.load(Ordering::Relaxed);
            let first = self.request(active, &ask, token.as_deref())?;
            match self.read(origin, &first, place.clone(), range, len).await {
                Ok((reply, answer, place)) => return Ok((reply, answer, Some(place))),
                // Whatever it was, the name node knows better than what it said a while ago.
                Err(refused) => self.give_up(&place, range, &refused),
            }
        }
        let mut failed: Option<Refused> = None;
        for _ in 0..MOST_DATA_NODES {
            let (first, reply, at) = match self.ask_name_nodes(origin, &ask).await {
                Ok(answered) => answered,
                Err(_) if failed.is_some() => break,
                Err(refused) if self.places.forgive() => {
                    // It may have no other data node than one that failed a while ago.
                    failed = Some(refused);
                    continue;
                }
                Err(refused) => return Err(refused.failure),
            };
            let Some(to) = redirect::target(reply.status, &reply.headers, &at)? else {
                // A gateway, which sends the bytes itself.
                meet(origin, &first, &reply, &at);
                let answer = judge::bytes(&reply, range, len)?;
                return Ok((reply, answer, None));
            };
            // The data node may be at the same address, and have no room while this is under way.
            drop(reply);
            names::HTTP_REDIRECTS.increment();
            match self.read(origin, &first, to.clone(), range, len).await {
                Ok((reply, answer, place)) => {
                    self.places.remember(range, place.clone());
                    return Ok((reply, answer, Some(place)));
                }
                Err(refused) => {
                    let was_avoided = self.places.avoids(&to);
                    self.give_up(&to, range, &refused);
                    let is_over = was_avoided || !self.places.avoids(&to);
                    failed = Some(refused);
                    if is_over {
                        break;
                    }
                }
            }
        }
        Err(failed.map_or_else(nobody, |refused| refused.failure))
    }

    /// Bytes from `offset` on came wrong from `place`, or not to their end: the next request for them is to go elsewhere.
    pub(crate) fn stumbled(&self, offset: u64, place: &Url) {
        self.places.forget(&(offset..offset + 1), place);
        self.places.avoid(place);
    }

    async fn ask_status(&self, origin: &Origin) -> Result<FileStatus, Failure> {
        let answered = self.ask_name_nodes(origin, &Ask::Length).await;
        let (first, mut reply, mut at) = answered.map_err(|refused| refused.failure)?;
        let mut hops = 0;
        while let Some(to) = redirect::target(reply.status, &reply.headers, &at)? {
            next_hop(&mut hops)?;
            drop(reply);
            reply = origin.send(origin.shared(), first.to(&to)).await?;
            at = to;
        }
        if reply.status.as_u16() >= 400 {
            return Err(refusal(origin, &first, &mut reply, &at).await.failure);
        }
        meet(origin, &first, &reply, &at);
        let body = collect(origin, &mut *reply.body).await?;
        let status = judge::status(&body)?;
        self.places.learn(status.block_size);
        Ok(status)
    }

    /// The answer of the active name node, with the request and where it went; others are asked where it is none.
    async fn ask_name_nodes(
        &self,
        origin: &Origin,
        ask: &Ask,
    ) -> Result<(Request, Reply, Url), Refused> {
        let (count, active) = (self.name_nodes.len(), self.active.load(Ordering::Relaxed));
        let mut failed = None;
        let mut token = origin.token(None).await?;
        for turn in 0..count {
            let number = (active + turn) % count;
            let mut request = self.request(number, ask, token.as_deref())?;
            let url = request.url.clone();
            let mut sent = origin.send(origin.shared(), request.clone()).await;
            let is_refused = sent
                .as_ref()
                .is_ok_and(|reply| reply.status.as_u16() == 401);
            if let (true, Some(last)) = (is_refused, token.clone()) {
                token = origin.token(Some(&last)).await?;
                if token.as_ref() != Some(&last) {
                    drop(sent);
                    request = self.request(number, ask, token.as_deref())?;
                    sent = origin.send(origin.shared(), request.clone()).await;
                }
            }
            let refused = match sent {
                Ok(reply) if reply.status.as_u16() < 400 => {
                    self.active.store(number, Ordering::Relaxed);
                    return Ok((request, reply, url));
                }
                Ok(mut reply) => refusal(origin, &request, &mut reply, &url).await,
                Err(failure) => Refused::silently(failure),
            };
            let is_next_asked = refused.cause.is_standby() || refused.is_unreachable();
            if !is_next_asked {
                return Err(refused);
            }
            failed = Some(refused);
        }
        let mut refused = failed.unwrap_or_else(|| Refused::silently(nobody()));
        if count > 1 {
            let why = &refused.failure.why;
            refused.failure.why = format!("none of {count} name nodes is active; the last: {why}");
        }
        Err(refused)
    }

    fn request(
        &self,
        number: usize,
        ask: &Ask,
        token: Option<&String>,
    ) -> Result<Request, Failure> {
        let moment = Moment {
            bearer: token.map(String::as_str),
            ..Moment::at(SystemTime::now())
        };
        let made = self.name_nodes[number % self.name_nodes.len()].request(ask, &moment);
        let mut request = made.and_then(outgoing).map_err(Failure::of)?;
        if let (Ask::Range(_), Some(names)) = (ask, self.places.avoided()) {
            request
                .url
                .query_pairs_mut()
                .append_pair("excludedatanodes", &names);
        }
        Ok(request)
    }

    /// The bytes as they come from `place`, and where they really came from; both as the cluster calls them, since that is
    /// what its name nodes know.
    async fn read(
        &self,
        origin: &Origin,
        first: &Request,
        place: Url,
        range: &Range<u64>,
        len: u64,
    ) -> Result<(Reply, Answer, Url), Refused> {
        let (mut at, mut hops) = (place, 0);
        loop {
            let here = self.names.translate(at.clone())?;
            let sent = origin.send(origin.shared(), first.to(&here)).await;
            let mut reply = sent.map_err(|failure| elsewhere(failure, &at, &here))?;
            if let Some(to) = redirect::target(reply.status, &reply.headers, &at)? {
                next_hop(&mut hops)?;
                at = to;
                continue;
            }
            if reply.status.as_u16() >= 400 {
                return Err(refusal(origin, first, &mut reply, &at).await);
            }
            meet(origin, first, &reply, &at);
            let answer = judge::bytes(&reply, range, len)?;
            return Ok((reply, answer, at));
        }
    }

    /// `place` failed: it is not gone to directly any more, and not named to us again where the fault is its own.
    fn give_up(&self, place: &Url, range: &Range<u64>, refused: &Refused) {
        self.places.forget(range, place);
        // Who may not read, what is not there, and a name node on standby are the same wherever one asks.
        if refused.is_unreachable() || refused.status >= 500 || refused.is_about_reading() {
            self.places.avoid(place);
        }
    }
}

/// An answer that is none to the question, or the lack of one.
#[derive(Debug)]
struct Refused {
    failure: Failure,
    /// 0 if there was no answer.
    status: u16,
    cause: Cause,
}

impl Refused {
    fn silently(failure: Failure) -> Refused {
        Refused {
            failure,
            status: 0,
            cause: Cause::default(),
        }
    }

    fn is_unreachable(&self) -> bool {
        let kinds = [ErrorKind::Unreachable, ErrorKind::TimedOut];
        self.status == 0 && kinds.contains(&self.failure.kind)
    }

    /// Whether the node could not read what it has.
    fn is_about_reading(&self) -> bool {
        let code = self.cause.code.as_deref().unwrap_or_default();
        matches!(code, "IOException" | "BlockMissingException")
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Refused {
        Refused::silently(failure)
    }
}

/// What the refusal of `request` by the node at `at` means.
async fn refusal(origin: &Origin, request: &Request, reply: &mut Reply, at: &Url) -> Refused {
    let secrets = origin.secrets(request, at);
    let body = origin.reason(reply).await;
    let cause = Cause::of_webhdfs(&body, &secrets).or_headers(&reply.headers, &secrets);
    let mut failure = origin.refusal(reply, &cause);
    if failure.again == Again::Never && cause.passes() {
        failure.again = Again::Soon;
    }
    Refused {
        failure,
        status: reply.status.as_u16(),
        cause,
    }
}

/// Hears how the node at `at` calls itself, which answered to `request`.
fn meet(origin: &Origin, request: &Request, reply: &Reply, at: &Url) {
    origin
        .server
        .meet(&reply.headers, || origin.secrets(request, at));
}

/// All of a body that is not long.
async fn collect(origin: &Origin, body: &mut dyn Body) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    while let Some(chunk) = origin.chunk_of(body).await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > FileStatus::LONGEST {
            break;
        }
    }
    Ok(bytes)
}

/// A failure to reach a data node says which one it was, and where it was looked for: its name may mean nothing here.
fn elsewhere(mut failure: Failure, named: &Url, here: &Url) -> Failure {
    if failure.kind == ErrorKind::Unreachable || failure.kind == ErrorKind::TimedOut {
        let (named, here) = (places::name(named), places::name(here));
        let clause = match named == here {
            true => "can say where that is".to_owned(),
            false => format!("says that it is at {here}"),
        };
        failure.why = format!(
            "{}; the name node names the data node {named}, and `RemoteOptions::data_node` {clause}",
            failure.why
        );
    }
    failure
}

fn next_hop(hops: &mut usize) -> Result<(), Failure> {
    *hops += 1;
    if *hops > redirect::MOST {
        return Err(redirect::too_many());
    }
    names::HTTP_REDIRECTS.increment();
    Ok(())
}

fn nobody() -> Failure {
    Failure::lasting(ErrorKind::Internal, "no name node is asked")
}

// A block has three copies as a rule.
const MOST_DATA_NODES: usize = 4;
