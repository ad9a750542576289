//! How tests open objects, and an address where nobody is.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use kvik::{RemoteHandle, RemoteOptions};

/// Options without waits between requests: what is asked for again is so at once.
pub fn quick() -> RemoteOptions {
    RemoteHandle::builder().backoff(Duration::ZERO, Duration::ZERO)
}

/// An address of this machine where nobody listens: its port was free a moment ago, and is not given out again so soon.
#[must_use]
pub fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}
