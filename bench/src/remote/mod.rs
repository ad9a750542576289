//! Objects of a server on this machine: what `cargo xtask bench remote` measures, beside plain clients, KvikIO and obstore.
//!
//! ```text
//! suite -> session -> site: nginx in a process of its own, over the data file
//!             |
//!             +-> cast -> scenes -> reader: kvik, a loop, or (by its own clock) a guest
//! ```
//! What a client costs is told apart from what the server costs: nginx is another process, and so is each guest.

mod cast;
mod cluster;
mod door;
mod guests;
mod loops;
mod nginx;
mod ours;
mod reader;
mod reading;
mod scenes;
mod site;
mod suite;
#[cfg(test)]
mod test_server;

pub(crate) use cast::RemoteKind;
pub use reading::{Reading, ReadingFigure, ReadingOptions, remote_reading, with_served_file};
pub(crate) use site::Site;
pub use suite::remote_suite;
