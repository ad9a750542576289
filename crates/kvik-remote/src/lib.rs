//! Parallel ranged reads of remote objects into host or device memory: door three.
//!
//! Open a [`RemoteHandle`], then [`read_at`](RemoteHandle::read_at) any range of it into a [`Target`](kvik_core::Target). The
//! range is cut into pieces; each is asked for by a request of its own, and what comes is believed only after its status,
//! range, length and version were checked:
//!
//! ```text
//! read_at -> plan -> transfer -> fetch -> transport -> server
//!                                  |
//!                    reply: is it what was asked for?  retry: is it worth another request?
//! ```
//!
//! # Example: the first kibibyte of an object
//! ```no_run
//! # fn main() -> kvik_core::Result<()> {
//! use kvik_remote::RemoteHandle;
//!
//! let object = RemoteHandle::open("https://example.org/weights.bin")?;
//! let mut bytes = [0; 1024];
//! let count = object.read_at(&mut bytes, 0)?;
//! println!("{count} of {} bytes, version {:?}", object.len(), object.validator());
//! # Ok(())
//! # }
//! ```
//!
//! # Not here
//! Files (`kvik-core`), settings (`kvik-config`), writing to servers.
//!
//! # Foreign types in the public interface
//! Those of `kvik_config` and `kvik_core`, both of this workspace, and in [`protocol`] those of `http` and `url`; no
//! others.

#![forbid(unsafe_code)]

mod handle;
mod options;
mod validator;

mod object;
mod opening;
mod origin;
mod pending_open;

mod crowd;
mod failure;
mod latest;
mod pace;
mod redirect;
mod reply;
mod retry;
mod width;

mod fetch;
mod tls;
mod transport;

mod bearer;
mod credentials;
mod location;

mod cause;
mod cluster;
mod diagnosis;
mod endpoint;
mod sign;
mod store;

mod percent;
mod redact;
mod server;

pub mod protocol;

pub use credentials::{
    AwsSettings, Chain, Credentials, Environment, Finding, Keys, Profile, ProfileFiles, Profiles,
    Said,
};
pub use diagnosis::{Diagnosis, Outcome, Stage, Step};
pub use endpoint::Addressing;
pub use handle::{RemoteHandle, S3Facts};
pub use location::{Kind, Location};
pub use options::{Anonymous, NamedOption, RemoteOptions};
pub use pending_open::PendingOpen;
pub use validator::Validator;
