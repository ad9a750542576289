//! Parallel ranged reads of remote objects into host or device memory: door three.
//!
//! # Not here
//! Files (`kvik-core`) and settings (`kvik-config`).

#![forbid(unsafe_code)]

mod cause;
mod credentials;
mod endpoint;
mod location;
mod percent;
pub mod protocol;
mod redact;
mod sign;

pub use credentials::{
    AwsSettings, Chain, Credentials, Environment, Finding, Keys, Profile, ProfileFiles, Profiles,
    Said,
};
pub use location::{Kind, Location};
