//! reqwest as a careful programmer would use it: ranges under way at the same time, chunks copied into place as they come.

use std::io;
use std::path::Path;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use reqwest::header::RANGE;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, RequestBuilder, StatusCode};
use tokio::runtime::{Builder, Runtime};

use super::{CHUNK, Queue, range, trust};
use crate::contender::{Contender, Role};
use crate::loops::{by_threads, each_on_a_thread};
use crate::remote::reader::Reader;
use crate::trouble::{Doing, Outcome};

/// Threads that each have a client, and so many ranges under way.
pub(crate) struct ClientLoop {
    url: String,
    // A connection belongs to the runtime that made it, so that each thread has its own of both.
    threads: Vec<(Runtime, Client)>,
    lanes: usize,
    asks: Asks,
}

/// How a piece is asked for.
#[derive(Clone, Copy)]
enum Asks {
    /// By the field `Range`.
    Range,
    /// By the query, of a name node that sends on to a data node.
    Open,
}

impl ClientLoop {
    pub(crate) fn new(
        url: &str,
        authority: Option<&Path>,
        threads: usize,
        lanes: usize,
    ) -> Outcome<Self> {
        let threads = (0..threads).map(|_| thread(authority));
        let threads = threads.collect::<io::Result<Vec<_>>>();
        Ok(Self {
            url: url.to_owned(),
            threads: threads.doing("set up a client for", Path::new(url))?,
            lanes,
            asks: Asks::Range,
        })
    }

    /// The same for a file of HDFS, whose URL has a query.
    pub(crate) fn of_hdfs(self) -> Self {
        Self {
            asks: Asks::Open,
            ..self
        }
    }
}

impl Reader for ClientLoop {
    fn contender(&self) -> Contender {
        let (threads, lanes) = (by_threads(self.threads.len()), self.lanes);
        let name = format!("reqwest, {threads}, {lanes} ranges each");
        Contender::new(Role::Loop, name)
    }

    fn read(&mut self, target: &mut [u8], offsets: &[u64], size: usize) -> Outcome<()> {
        let queue = Queue::new(target, offsets, size, CHUNK);
        let (url, lanes, asks) = (self.url.as_str(), self.lanes, self.asks);
        let done = each_on_a_thread(self.threads.iter().collect(), |(runtime, client)| {
            // Pieces are taken when a lane is free, so that no thread has taken what another one waits for.
            let pieces = stream::iter(std::iter::from_fn(|| queue.next()));
            let fetched = pieces
                .map(Ok)
                .try_for_each_concurrent(lanes, |(offset, piece)| {
                    let len = piece.len();
                    let asked = match asks {
                        Asks::Range => client.get(url).header(RANGE, range(offset, len)),
                        Asks::Open => {
                            client.get(format!("{url}&op=OPEN&offset={offset}&length={len}"))
                        }
                    };
                    fill(piece, asked)
                });
            runtime.block_on(fetched)
        });
        done.doing("read", Path::new(url))
    }
}

/// Copies what comes into `piece`, which it must fill.
async fn fill(piece: &mut [u8], asked: RequestBuilder) -> io::Result<()> {
    let mut reply = asked.send().await.map_err(io::Error::other)?;
    if !matches!(reply.status(), StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
        return Err(io::Error::other(format!("answered {}", reply.status())));
    }
    let mut rest = piece;
    while let Some(chunk) = reply.chunk().await.map_err(io::Error::other)? {
        let Some((place, after)) = rest.split_at_mut_checked(chunk.len()) else {
            return Err(io::Error::other("sent more than was asked for"));
        };
        place.copy_from_slice(&chunk);
        rest = after;
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// For what is asked once, and follows no redirect.
pub(crate) fn one_client() -> io::Result<(Runtime, Client)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let client = builder(None)?.redirect(Policy::none()).build();
    Ok((runtime, client.map_err(io::Error::other)?))
}

fn thread(authority: Option<&Path>) -> io::Result<(Runtime, Client)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let client = builder(authority)?.build().map_err(io::Error::other)?;
    Ok((runtime, client))
}

fn builder(authority: Option<&Path>) -> io::Result<ClientBuilder> {
    let client = Client::builder()
        .tls_backend_preconfigured(trust::config(authority)?)
        .http1_only()
        .no_proxy()
        .tcp_nodelay(true);
    Ok(client)
}
