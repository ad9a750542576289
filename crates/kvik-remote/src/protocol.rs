//! What goes over the network, without a network: requests, signatures, and what refusals mean. All of it takes values and
//! returns values, for a transport of one's own, a server of tests or a fuzzer.
//!
//! Applications need none of this.

pub use crate::cause::Cause;
pub use crate::endpoint::{
    Addressing, Ask, Endpoint, FileStatus, HttpEndpoint, Moment, PresignedEndpoint, Request, Reuse,
    S3Endpoint, S3Options, WebHdfsEndpoint, WebHdfsOptions,
};
pub use crate::sign::sign;
