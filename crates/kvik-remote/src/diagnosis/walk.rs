//! The walk: one step after the other, until one fails or the time is over.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kvik_core::ErrorKind;
use url::Url;

use super::link::{self, Server};
use super::watch::{Log, Watched};
use super::{Seen, Stage, Step, advice, clock, credentials, http, range, tls};
use crate::credentials::Said;
use crate::location::{Found, Kind, Location};
use crate::origin::{Asker, Origin};

/// What is walked.
pub(crate) struct Way {
    pub(crate) location: Location,
    pub(crate) origin: Origin,
    /// Whether a token or a header of the caller says who asks.
    pub(crate) authorized: bool,
    pub(crate) endpoint: Option<Said>,
    pub(crate) region: Option<Said>,
    /// The longest object that is kept whole.
    pub(crate) whole: u64,
    /// When it is to be over, and how long that was.
    pub(crate) end: Instant,
    pub(crate) limit: Duration,
}

impl Way {
    /// Whether a user of the URL or a header says who asks.
    pub(super) fn has_user(&self) -> bool {
        let of_url = match self.location.found() {
            Found::Web(url) | Found::File(url) => url.user_info().is_some(),
            Found::Object(_) => false,
        };
        self.authorized || of_url
    }

    /// Whether the server is asked by a proxy.
    pub(super) fn has_proxy(&self) -> bool {
        let url = Url::parse(&self.address()).ok();
        url.is_some_and(|url| self.origin.client.proxies.for_url(&url).is_some())
    }

    /// Whether the server is asked over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        let url = Url::parse(&self.address()).ok();
        url.is_some_and(|url| url.scheme() == "https")
    }

    fn address(&self) -> String {
        match &self.origin.asker {
            Asker::Store(store) => store.address(),
            _ => self.location.to_string(),
        }
    }
}

/// Takes the steps from `credentials` on, up to the last before a handle is opened.
pub(crate) async fn walk(way: &Way) -> Vec<Step> {
    let mut steps = Vec::new();
    // How far it came is in the steps.
    let _ = until_failure(way, &mut steps).await;
    steps
}

async fn until_failure(way: &Way, steps: &mut Vec<Step>) -> Option<()> {
    let limit = way.origin.client.connect_timeout;
    let found = within(way, Stage::Credentials, credentials::examine(way)).await;
    take(steps, found)?;
    let url = Url::parse(&way.address()).ok();
    let Some((url, server)) = url.and_then(|url| Some((url.clone(), Server::of(&url)?))) else {
        let what = "the host of the URL is none to the HTTP client";
        let step = Step::failed(Stage::Dns, ErrorKind::Misuse, what, advice::OF_URL);
        return take(steps, Err(step));
    };
    let proxy = match Between::of(way, &url) {
        Ok(proxy) => proxy,
        Err(step) => return take(steps, Err(step)),
    };
    let first = proxy.as_ref().map_or(&server, |proxy| &proxy.server);
    let found = within(way, Stage::Dns, link::resolve(first, limit)).await;
    let addresses = take(steps, marked(found, proxy.as_ref()))?;
    let found = within(way, Stage::Tcp, link::connect(first, &addresses, limit)).await;
    let address = take(steps, marked(found, proxy.as_ref()))?;
    match &proxy {
        None if server.is_secure => {
            let shaken = tls::examine(&server, address, &way.origin.client.trust, limit);
            let found = within(way, Stage::Tls, shaken).await;
            take(steps, found)?;
        }
        Some(_) if server.is_secure => {
            let later = "left to the request, which goes through the proxy";
            steps.push(Step::left(Stage::Tls, later));
        }
        _ => {}
    }
    if way.location.kind() == Kind::WebHdfs {
        let later = "left to opening: WebHDFS has a protocol of its own";
        let stages = [Stage::Http, Stage::Clock, Stage::Range, Stage::Validator];
        steps.extend(stages.map(|stage| Step::left(stage, later)));
        return Some(());
    }
    ask(way, steps).await
}

/// The proxy that the server is asked by.
struct Between {
    /// Without name and password, with who named it.
    name: String,
    server: Server,
}

impl Between {
    fn of(way: &Way, url: &Url) -> Result<Option<Between>, Step> {
        let Some(proxy) = way.origin.client.proxies.for_url(url) else {
            return Ok(None);
        };
        let name = proxy.to_string();
        let server = proxy.to_url().map(|url| Server::of(&url));
        match server {
            Ok(Some(server)) => Ok(Some(Between { name, server })),
            Ok(None) => Err(advice::without_proxy(Step::failed(
                Stage::Dns,
                ErrorKind::Config,
                format!("{name} has no host"),
                "correct its URL",
            ))),
            Err(failure) => Err(advice::without_proxy(Step::of_failure(
                Stage::Dns,
                &failure,
                "correct its URL",
            ))),
        }
    }
}

/// What was found of a proxy, marked as such.
fn marked<T>(seen: Seen<T>, proxy: Option<&Between>) -> Seen<T> {
    let Some(Between { name, .. }) = proxy else {
        return seen;
    };
    match seen {
        Ok((step, found)) => Ok((step.fact("proxy", name.clone()), found)),
        Err(step) => Err(advice::without_proxy(step.fact("proxy", name.clone()))),
    }
}

async fn ask(way: &Way, steps: &mut Vec<Step>) -> Option<()> {
    let log = Log::default();
    way.origin.shared_over(|transport| {
        let log = log.clone();
        Arc::new(Watched { transport, log })
    });
    let asked = within(way, Stage::Http, async {
        Ok((http::examine(way, &log).await, ()))
    })
    .await;
    let asked = match asked {
        Ok((asked, ())) => asked,
        Err(step) => return take(steps, Err(step)),
    };
    steps.push(asked.step);
    if let Some(head) = &asked.head {
        let signs = matches!(&way.origin.asker, Asker::Store(store) if store.is_signed());
        steps.push(clock::examine(head, signs));
    }
    let judged = within(way, Stage::Range, range::examine(way, asked.answer?)).await;
    let validator = take(steps, judged)?;
    steps.push(range::validator(&validator));
    Some(())
}

/// Keeps the step, and goes on with what it found.
fn take<T>(steps: &mut Vec<Step>, seen: Seen<T>) -> Option<T> {
    match seen {
        Ok((step, found)) => {
            steps.push(step);
            Some(found)
        }
        Err(step) => {
            steps.push(step);
            None
        }
    }
}

/// What `work` finds, unless the time for all of it is over.
async fn within<S, T>(
    way: &Way,
    stage: Stage,
    work: impl Future<Output = Result<(S, T), Step>>,
) -> Result<(S, T), Step> {
    let end = tokio::time::Instant::from_std(way.end);
    tokio::time::timeout_at(end, work)
        .await
        .unwrap_or_else(|_| {
            let what = format!(
                "not done within the {} s for all steps",
                way.limit.as_secs_f64()
            );
            Err(Step::failed(
                stage,
                ErrorKind::TimedOut,
                what,
                advice::OF_SILENCE,
            ))
        })
}
