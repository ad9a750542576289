//! What goes over the network while an object is asked for: each request and the head of its answer, as the client sees
//! them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use url::Url;

use crate::failure::Failure;
use crate::redact;
use crate::transport::{Body, Reply, Request, Soon, Transport};

/// A request, and the head of its answer if there was one.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    pub(super) url: Url,
    pub(super) head: Option<Head>,
    /// What was sent along that no text may show.
    pub(super) secrets: Vec<String>,
}

/// What came.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    /// When it came, and how long after the request.
    pub(super) at: SystemTime,
    pub(super) took: Duration,
    /// What was read of the body of an answer that is none to the question.
    pub(super) reason: Vec<u8>,
}

/// All of them, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Log(Arc<Mutex<Vec<Exchange>>>);

impl Log {
    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Exchange>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn head(&self, at: usize, change: impl FnOnce(&mut Option<Head>)) {
        if let Some(exchange) = self.locked().get_mut(at) {
            change(&mut exchange.head);
        }
    }
}

/// A transport that is watched.
pub(super) struct Watched {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) log: Log,
}

impl Transport for Watched {
    fn send(&self, request: Request) -> Soon<'_, Result<Reply, Failure>> {
        Box::pin(async move {
            let at = {
                let mut exchanges = self.log.locked();
                let query = request.url.query().unwrap_or_default();
                let mut secrets = redact::secrets_of_headers(&request.headers);
                secrets.extend(redact::secrets_of_query(query));
                exchanges.push(Exchange {
                    url: request.url.clone(),
                    head: None,
                    secrets,
                });
                exchanges.len() - 1
            };
            let begun = Instant::now();
            let reply = self.transport.send(request).await?;
            let head = Head {
                status: reply.status,
                headers: reply.headers.clone(),
                at: SystemTime::now(),
                took: begun.elapsed(),
                reason: Vec::new(),
            };
            self.log.head(at, |known| *known = Some(head));
            let body = WatchedBody {
                body: reply.body,
                log: self.log.clone(),
                at,
            };
            let body: Box<dyn Body> = match reply.status.is_success() {
                true => body.body,
                false => Box::new(body),
            };
            Ok(Reply { body, ..reply })
        })
    }
}

struct WatchedBody {
    body: Box<dyn Body>,
    log: Log,
    at: usize,
}

impl Body for WatchedBody {
    fn chunk(&mut self) -> Soon<'_, Result<Option<Bytes>, Failure>> {
        Box::pin(async move {
            let chunk = self.body.chunk().await?;
            if let Some(bytes) = &chunk {
                self.log.head(self.at, |head| {
                    if let Some(head) = head {
                        let room = LONGEST_REASON - head.reason.len();
                        head.reason
                            .extend_from_slice(&bytes[..bytes.len().min(room)]);
                    }
                });
            }
            Ok(chunk)
        })
    }
}

/// A URL without secrets.
pub(super) fn shown(url: &Url) -> String {
    let place = format!("{}{}", url.origin().ascii_serialization(), url.path());
    match url.query() {
        Some(query) => format!("{place}?{}", redact::query(query)),
        None => place,
    }
}

// Beyond this nobody explains a refusal.
const LONGEST_REASON: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_user_and_its_query() {
        let url = Url::parse("https://me:secret@example.org:8443/a%20b?sig=cafe&op=OPEN").unwrap();
        assert_eq!(
            shown(&url),
            "https://example.org:8443/a%20b?sig=***&op=OPEN"
        );
    }
}
