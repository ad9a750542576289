//! How a request becomes a reply: a trait of one verb, and the client behind it.

mod bypass;
mod client;
mod connecting;
mod driver;
mod names;
mod proxy;
mod runtime;

use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use reqwest::dns::{Name, Resolve};
use url::Url;

use crate::failure::Failure;

pub(crate) use client::{Client, ClientOptions};
pub(crate) use connecting::{Connecting, note_tls};
pub(crate) use driver::{Driver, drive, may_drive};
pub(crate) use proxy::Proxies;
pub(crate) use runtime::runtime;

/// Sends requests.
pub(crate) trait Transport: Send + Sync {
    /// Sends `request`; the reply is there with its head, and brings its body on demand.
    fn send(&self, request: Request) -> Soon<'_, Result<Reply, Failure>>;
}

/// A body that arrives.
pub(crate) trait Body: Send {
    /// The next bytes; `None` at the end that the server has marked as such.
    fn chunk(&mut self) -> Soon<'_, Result<Option<Bytes>, Failure>>;
}

/// As much of a body as comes in time, and no more than `most` bytes.
pub(crate) async fn body_within(body: &mut dyn Body, most: usize, time: Duration) -> Vec<u8> {
    let mut bytes = Vec::new();
    let all = async {
        while let Ok(Some(chunk)) = body.chunk().await {
            let room = most - bytes.len();
            bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if bytes.len() == most {
                break;
            }
        }
    };
    // What has come by then will do.
    let _ = tokio::time::timeout(time, all).await;
    bytes
}

/// The addresses of a host, as the client finds them, without a port.
pub(crate) async fn addresses_of(
    host: &str,
) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
    let name: Name = host.parse()?;
    let names = names::Resolver(names::Names::shared());
    Ok(names.resolve(name).await?.collect())
}

/// A GET. Redirects are not followed, and what comes is not decoded.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
}

/// The head of an answer, and its body.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Box<dyn Body>,
}

pub(crate) type Soon<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
