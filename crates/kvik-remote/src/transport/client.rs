//! The general client: HTTP/1.1 over TCP and TLS, proxies, connections that are kept.

use std::collections::HashMap;
use std::error::Error as _;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use kvik_core::corridor::PerProcess;
use kvik_core::{ErrorKind, Result};
use kvik_stats::names;
use url::{Host, Url};

use super::connecting::{Measured, Opened};
use super::driver::Connections;
use super::names::{Names, Resolver};
use super::proxy::{Proxies, Proxy};
use super::{Body, Reply, Request, Soon, Transport};
use crate::failure::Failure;
use crate::tls::{self, Trust};

/// What makes clients differ; those who want the same share one, and its connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ClientOptions {
    pub(crate) trust: Trust,
    pub(crate) proxies: Proxies,
    pub(crate) connect_timeout: Duration,
}

/// Connections to servers and proxies: those without TLS, and those with it, which are made ready at the first use.
pub(crate) struct Client {
    options: ClientOptions,
    // No other client of this process has it.
    number: usize,
    plain: PerProcess<reqwest::Client>,
    secure: PerProcess<reqwest::Client>,
    // Made once: it has the sessions that TLS can go on with.
    trusting: PerProcess<rustls::ClientConfig>,
}

impl Client {
    /// The client of this process for these options.
    pub(crate) fn shared(options: &ClientOptions) -> Arc<Client> {
        type Clients = Mutex<HashMap<ClientOptions, Arc<Client>>>;
        // In a child the parent's lock may be held by a thread that is not there.
        static CLIENTS: PerProcess<Clients> = PerProcess::new();
        let clients = CLIENTS.get_or(Clients::default);
        let mut clients = clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(options) {
            return Arc::clone(client);
        }
        let client = Arc::new(Client {
            options: options.clone(),
            number: clients.len(),
            plain: PerProcess::new(),
            secure: PerProcess::new(),
            trusting: PerProcess::new(),
        });
        clients.insert(options.clone(), Arc::clone(&client));
        client
    }

    /// What connects to the host of this URL, or to its proxy: with TLS if either of them speaks it. Its connections belong to
    /// the runtime that this thread drives, or else to the one that all share.
    fn connecting_to(&self, url: &Url, proxy: Option<&Url>) -> Result<reqwest::Client, Failure> {
        let is_secure = |url: &Url| url.scheme() == "https";
        let is_secure = is_secure(url) || proxy.is_some_and(is_secure);
        match Connections::here() {
            Some(connections) => {
                let number = (self.number, is_secure);
                connections.client(number, || self.build(is_secure))
            }
            None if is_secure => self.secure.get_or_make(|| self.build(true)).cloned(),
            None => self.plain.get_or_make(|| self.build(false)).cloned(),
        }
    }

    fn build(&self, is_secure: bool) -> Result<reqwest::Client, Failure> {
        let config = match is_secure {
            true => self
                .trusting
                .get_or_make(|| tls::config(&self.options.trust))?
                .clone(),
            false => tls::trusting_nobody().map_err(Failure::of)?,
        };
        build(&self.options, config)
            .map_err(|error| Failure::lasting(ErrorKind::Internal, error.to_string()))
    }
}

impl Transport for Client {
    fn send(&self, request: Request) -> Soon<'_, Result<Reply, Failure>> {
        Box::pin(async move {
            let proxy = self.options.proxies.for_url(&request.url);
            // One that is wrong would be passed over by the client, and the server asked without it.
            let proxy_url = proxy.map(Proxy::to_url).transpose()?;
            let client = self.connecting_to(&request.url, proxy_url.as_ref())?;
            let response = self.answer(&client, &request).await;
            let response = response.map_err(|error| self.failure(error, &request.url, proxy))?;
            let by_proxy = proxy.filter(|_| request.url.scheme() == "http");
            if let (Some(proxy), StatusCode::PROXY_AUTHENTICATION_REQUIRED) =
                (by_proxy, response.status())
            {
                return Err(unknown_to(proxy));
            }
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
    /// Sends the request until an answer comes, or it fails. A connection that was kept may have been closed just now by the
    /// server, which is no failure of this request as long as nothing has come.
    async fn answer(
        &self,
        client: &reqwest::Client,
        request: &Request,
    ) -> Result<reqwest::Response, reqwest::Error> {
        let mut closed = 0;
        loop {
            let opened = Opened::default();
            let sent = client
                .get(request.url.clone())
                .headers(request.headers.clone())
                .send();
            match opened.watch(sent).await {
                Err(error) if !opened.is_new() && closed < MOST_CLOSED && is_closed(&error) => {
                    closed += 1;
                    names::HTTP_CLOSED_CONNECTIONS.increment();
                }
                outcome => return outcome,
            }
        }
    }

    /// Why no answer came from the host of `url`.
    fn failure(&self, error: reqwest::Error, url: &Url, proxy: Option<&Proxy>) -> Failure {
        if let (true, None, Some(Host::Domain(name))) = (error.is_connect(), proxy, url.host()) {
            // The host may have moved: what is kept of it would lead to the same dead end for some seconds.
            Names::shared().forget(name);
        }
        // Its text would have the URL with all that is in it.
        let error = error.without_url();
        if let Some(reason) = find::<rustls::Error>(&error) {
            return match tls::is_about_trust(reason) {
                true => {
                    let whose = match proxy {
                        // With the server there is no TLS.
                        Some(proxy) if url.scheme() == "http" => {
                            format!("the certificate of {proxy}")
                        }
                        _ => "the server's certificate".to_owned(),
                    };
                    let why = format!(
                        "{whose} is refused: {}; trusted are {}",
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
                "no connection{} within {} s",
                by(proxy),
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
        if let Some(proxy) = proxy {
            let said = reason(&error);
            if said == NOT_AUTHORIZED {
                return unknown_to(proxy).because(error);
            }
            if said == NOT_CONNECTED {
                let why = format!("no connection: {proxy} refuses to connect us to the server");
                return Failure::passing(ErrorKind::Unreachable, why).because(error);
            }
        }
        let why = match error.is_connect() {
            true => format!("no connection{}: {}", by(proxy), reason(&error)),
            false => format!("the connection broke before an answer: {}", reason(&error)),
        };
        Failure::passing(ErrorKind::Unreachable, why).because(error)
    }
}

/// The proxy wants to know who asks, or does not believe it.
fn unknown_to(proxy: &Proxy) -> Failure {
    let why = format!("{proxy} asks for a name and a password, or refuses those it was given");
    Failure::lasting(ErrorKind::PermissionDenied, why)
}

fn by(proxy: Option<&Proxy>) -> String {
    proxy.map_or_else(String::new, |proxy| format!(" by {proxy}"))
}

/// Whether the connection ended before anything of an answer came.
fn is_closed(error: &reqwest::Error) -> bool {
    let ended = find::<hyper::Error>(error);
    let broke = find::<io::Error>(error).map(io::Error::kind);
    ended.is_some_and(|error| error.is_incomplete_message() || error.is_canceled())
        || matches!(
            broke,
            Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
        )
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
    let builder = reqwest::Client::builder();
    // Without either it would read the environment by itself.
    let builder = match options.proxies.is_empty() {
        true => builder.no_proxy(),
        false => {
            let proxies = options.proxies.clone();
            builder.proxy(reqwest::Proxy::custom(move |url| {
                proxies.for_url(url).and_then(|proxy| proxy.to_url().ok())
            }))
        }
    };
    let built = builder
        .tls_backend_preconfigured(tls)
        // One connection of HTTP/2 brings less than several of HTTP/1.1, and the feature may be on for another crate's sake.
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .tcp_nodelay(true)
        .dns_resolver(Resolver(Names::shared()))
        .connector_layer(Measured)
        .connect_timeout(options.connect_timeout)
        .http1_max_headers(MOST_HEADERS)
        .build();
    built.map_err(|error| {
        let why = format!("no HTTP client: {}", reason(&error));
        kvik_core::Error::new(ErrorKind::Internal, kvik_core::Op::Open, why).because(error)
    })
}

// How the client says that a proxy answered `CONNECT` with status 407, or another one that is no success: the type of this
// error is not to be had. A test for each finds out when the words change.
const NOT_AUTHORIZED: &str = "tunnel error: proxy authorization required";
const NOT_CONNECTED: &str = "tunnel error: unsuccessful";
// More than this in a row, and it is not by chance that they were just closed.
const MOST_CLOSED: u32 = 4;
// A hundred are a lot; beyond that a server wants to fill our memory. The client itself takes some hundred kibibytes of a head
// before it gives up.
const MOST_HEADERS: usize = 128;
const LONGEST_HEAD: usize = 64 << 10;
