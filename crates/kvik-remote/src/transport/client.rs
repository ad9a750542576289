//! The general client: HTTP/1.1 over TCP and TLS, proxies, connections that are kept.

use std::collections::HashMap;
use std::error::Error as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use kvik_core::corridor::PerProcess;
use kvik_core::{ErrorKind, Result};

use super::names::Names;
use super::{Body, Reply, Request, Soon, Transport};
use crate::failure::Failure;
use crate::tls::{self, Trust};

/// What makes clients differ; those who want the same share one, and its connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientOptions {
    pub(crate) trust: Trust,
    pub(crate) connect_timeout: Duration,
}

/// Connections to servers: those without TLS, and those with it, which are made ready at the first use.
pub(crate) struct Client {
    options: ClientOptions,
    plain: reqwest::Client,
    secure: PerProcess<reqwest::Client>,
}

impl Client {
    /// The client of this process for these options.
    ///
    /// # Errors
    /// `Internal` if the client cannot be set up.
    pub(crate) fn shared(options: &ClientOptions) -> Result<Arc<Client>> {
        type Clients = Mutex<HashMap<ClientOptions, Arc<Client>>>;
        // In a child the parent's lock may be held by a thread that is not there.
        static CLIENTS: PerProcess<Clients> = PerProcess::new();
        let clients = CLIENTS.get_or_make(|| Ok::<_, kvik_core::Error>(Clients::default()))?;
        let mut clients = clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(options) {
            return Ok(Arc::clone(client));
        }
        let client = Arc::new(Client {
            options: options.clone(),
            plain: build(options, tls::trusting_nobody()?)?,
            secure: PerProcess::new(),
        });
        clients.insert(options.clone(), Arc::clone(&client));
        Ok(client)
    }

    fn for_scheme(&self, scheme: &str) -> Result<&reqwest::Client, Failure> {
        if scheme != "https" {
            return Ok(&self.plain);
        }
        self.secure.get_or_make(|| {
            let config = tls::config(&self.options.trust)?;
            build(&self.options, config)
                .map_err(|error| Failure::lasting(ErrorKind::Internal, error.to_string()))
        })
    }
}

impl Transport for Client {
    fn send(&self, request: Request) -> Soon<'_, Result<Reply, Failure>> {
        Box::pin(async move {
            let client = self.for_scheme(request.url.scheme())?;
            let sent = client.get(request.url).headers(request.headers).send();
            let response = sent.await.map_err(|error| self.failure(error))?;
            if size_of_head(&response) > LONGEST_HEAD {
                let why = "the head of the answer has more than 64 KiB";
                return Err(Failure::lasting(ErrorKind::BadReply, why));
            }
            Ok(Reply {
                status: response.status(),
                headers: response.headers().clone(),
                body: Box::new(Arriving(response)),
            })
        })
    }
}

struct Arriving(reqwest::Response);

impl Body for Arriving {
    fn chunk(&mut self) -> Soon<'_, Result<Option<Bytes>, Failure>> {
        Box::pin(async move { self.0.chunk().await.map_err(broken) })
    }
}

impl Client {
    /// Why no answer came.
    fn failure(&self, error: reqwest::Error) -> Failure {
        // Its text would have the URL with all that is in it.
        let error = error.without_url();
        if let Some(reason) = find::<rustls::Error>(&error) {
            return match tls::is_about_trust(reason) {
                true => {
                    let why = format!(
                        "the server's certificate is refused: {}; trusted are {}",
                        tls::check_that_failed(reason),
                        self.options.trust
                    );
                    Failure::lasting(ErrorKind::Untrusted, why).because(error)
                }
                false => {
                    let why = format!("no TLS with the server: {reason}");
                    Failure::passing(ErrorKind::Unreachable, why).because(error)
                }
            };
        }
        if error.is_timeout() && error.is_connect() {
            let why = format!(
                "no connection within {} s",
                self.options.connect_timeout.as_secs_f64()
            );
            return Failure::passing(ErrorKind::TimedOut, why).because(error);
        }
        if let Some(reason) = find::<hyper::Error>(&error).filter(|reason| reason.is_parse()) {
            let why = format!("the answer is none of HTTP: {reason}");
            return Failure::reply(why).because(error);
        }
        if error.is_builder() {
            return Failure::lasting(ErrorKind::Misuse, reason(&error)).because(error);
        }
        let why = match error.is_connect() {
            true => format!("no connection: {}", reason(&error)),
            false => format!("the connection broke before an answer: {}", reason(&error)),
        };
        Failure::passing(ErrorKind::Unreachable, why).because(error)
    }
}

/// Why a body ended before its end.
fn broken(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let is_tls = find::<rustls::Error>(&error).is_some();
    // The client says so of chunks that are none.
    let is_bad = find::<io::Error>(&error).is_some_and(|error| {
        matches!(
            error.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
        )
    });
    if is_bad && !is_tls {
        let why = format!("the body is none of HTTP: {}", reason(&error));
        return Failure::reply(why).because(error);
    }
    let why = format!("the connection broke: {}", reason(&error));
    Failure::passing(ErrorKind::Unreachable, why).because(error)
}

/// How many bytes the headers have.
fn size_of_head(response: &reqwest::Response) -> usize {
    let lines = response.headers().iter();
    lines
        .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
        .sum()
}

/// The text of the innermost error: those around it say that something went wrong.
fn reason(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

/// The error of type `T` among the causes.
fn find<T: std::error::Error + 'static>(error: &reqwest::Error) -> Option<&T> {
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref::<T>() {
            return Some(found);
        }
        // An `io::Error` does not show what it wraps as its source, but the source of that.
        let wrapped = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        next = match wrapped {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    None
}

fn build(options: &ClientOptions, tls: rustls::ClientConfig) -> Result<reqwest::Client> {
    let built = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        // One connection of HTTP/2 brings less than several of HTTP/1.1, and the feature may be on for another crate's sake.
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .tcp_nodelay(true)
        .dns_resolver(Names)
        .connect_timeout(options.connect_timeout)
        .http1_max_headers(MOST_HEADERS)
        .build();
    built.map_err(|error| {
        let why = format!("no HTTP client: {}", reason(&error));
        kvik_core::Error::new(ErrorKind::Internal, kvik_core::Op::Open, why).because(error)
    })
}

// A hundred are a lot; beyond that a server wants to fill our memory. The client itself takes some hundred kibibytes of a head
// before it gives up.
const MOST_HEADERS: usize = 128;
const LONGEST_HEAD: usize = 64 << 10;
