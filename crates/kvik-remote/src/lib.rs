//! Parallel ranged reads of remote objects into host or device memory: door three.
//!
//! # Not here
//! Files (`kvik-core`) and settings (`kvik-config`).

#![forbid(unsafe_code)]

mod credentials;
mod location;
mod percent;
mod redact;

pub use credentials::{
    AwsSettings, Chain, Credentials, Environment, Finding, Keys, Profile, ProfileFiles, Profiles, Said,
};
pub use location::{Kind, Location};
