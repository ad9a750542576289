//! reqwest as a careful programmer would use it: ranges under way at the same time, chunks copied into place as they come.

use std::io;
use std::path::Path;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use reqwest::header::RANGE;
use reqwest::{Client, StatusCode};
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
        })
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
        let (url, lanes) = (self.url.as_str(), self.lanes);
        let done = each_on_a_thread(self.threads.iter().collect(), |(runtime, client)| {
            // Pieces are taken when a lane is free, so that no thread has taken what another one waits for.
            let pieces = stream::iter(std::iter::from_fn(|| queue.next()));
            let fetched = pieces
                .map(Ok)
                .try_for_each_concurrent(lanes, |(offset, piece)| get(client, url, offset, piece));
            runtime.block_on(fetched)
        });
        done.doing("read", Path::new(url))
    }
}

async fn get(client: &Client, url: &str, offset: u64, piece: &mut [u8]) -> io::Result<()> {
    let asked = client.get(url).header(RANGE, range(offset, piece.len()));
    let mut reply = asked.send().await.map_err(io::Error::other)?;
    if reply.status() != StatusCode::PARTIAL_CONTENT {
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

fn thread(authority: Option<&Path>) -> io::Result<(Runtime, Client)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let client = Client::builder()
        .tls_backend_preconfigured(trust::config(authority)?)
        .http1_only()
        .no_proxy()
        .tcp_nodelay(true)
        .build()
        .map_err(io::Error::other)?;
    Ok((runtime, client))
}
