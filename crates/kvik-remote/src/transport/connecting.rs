//! How long it takes to be connected, and whether a request was: a layer around what makes connections.
//!
//! ```text
//! called ---- addresses ---- connected (and what a proxy takes) ---- TLS ---- there
//!        dns              tcp                                    tls
//! ```
//! The middle of this happens within the client. What of it can be seen from outside are the calls that it makes back: for
//! addresses to our resolver, and for what is known of the server to our store of TLS sessions. Both come on the task that
//! connects.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use kvik_stats::names;
use tokio::task_local;
use tower_layer::Layer;
use tower_service::Service;

/// Whether a connection was asked for on behalf of a request. If not, it goes by one that was there.
#[derive(Clone, Debug, Default)]
pub(super) struct Opened(Arc<AtomicBool>);

/// Whether a connection that was asked for on behalf of a request is not there yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connecting(Arc<AtomicBool>);

/// The moments of a connection that the client lets us see.
#[derive(Debug, Default)]
struct Moments {
    addresses: Cell<Option<Instant>>,
    tls: Cell<Option<Instant>>,
}

task_local! {
    static OPENED: Opened;
    static CONNECTING: Connecting;
    static MOMENTS: Moments;
}

impl Opened {
    /// Sends a request; what it opens is noted.
    pub(super) async fn watch<T>(&self, sending: impl Future<Output = T>) -> T {
        OPENED.scope(self.clone(), sending).await
    }

    pub(super) fn is_new(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Connecting {
    /// Sends a request; how far the connection has come that it asks for is noted.
    pub(crate) async fn watch<T>(&self, sending: impl Future<Output = T>) -> T {
        CONNECTING.scope(self.clone(), sending).await
    }

    /// Whether it is under way still, or has failed.
    pub(crate) fn lacks(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn note(&self, lacks: bool) {
        self.0.store(lacks, Ordering::Relaxed);
    }
}

/// The addresses of the host are there.
pub(super) fn note_addresses() {
    // Nobody connects where the resolver is asked for its own sake.
    let _ = MOMENTS.try_with(|moments| moments.addresses.set(Some(Instant::now())));
}

/// TLS begins; with a proxy by TLS it does so twice, and the second time counts.
pub(crate) fn note_tls() {
    let _ = MOMENTS.try_with(|moments| moments.tls.set(Some(Instant::now())));
}

/// Measures what makes connections.
#[derive(Clone, Debug)]
pub(super) struct Measured;

#[derive(Clone, Debug)]
pub(super) struct Measuring<S>(S);

impl<S> Layer<S> for Measured {
    type Service = Measuring<S>;

    fn layer(&self, connector: S) -> Measuring<S> {
        Measuring(connector)
    }
}

impl<S, R> Service<R> for Measuring<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        // This call is made on the task of the request; what it starts may go on without it.
        let _ = OPENED.try_with(|opened| opened.0.store(true, Ordering::Relaxed));
        // Nobody wants to know of a request that is made for another one's sake.
        let noted = CONNECTING.try_with(Connecting::clone).unwrap_or_default();
        noted.note(true);
        let connecting = self.0.call(request);
        Box::pin(MOMENTS.scope(Moments::default(), async move {
            let begun = Instant::now();
            let connection = connecting.await?;
            noted.note(false);
            MOMENTS.with(|moments| count(begun, moments, Instant::now()));
            Ok(connection)
        }))
    }
}

fn count(begun: Instant, moments: &Moments, there: Instant) {
    let addresses = moments.addresses.get().unwrap_or(begun);
    let tls = moments.tls.get().unwrap_or(there);
    names::HTTP_CONNECTIONS.increment();
    for (counter, from, to) in [
        (&names::HTTP_DNS, begun, addresses),
        (&names::HTTP_TCP, addresses, tls),
        (&names::HTTP_TLS, tls, there),
    ] {
        counter.add(to.saturating_duration_since(from).as_nanos() as u64);
    }
}
