//! By which door of the server the one object is read.

use std::fmt;

/// How the object is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// HTTP without TLS.
    Plain,
    /// HTTP by TLS, with a certificate of our own authority.
    Tls,
    /// An object of a bucket, by signed requests without TLS. The server does not look at the signature, so that only the
    /// client's work on it counts.
    S3,
    /// A file of HDFS, which a data node sends that a name node has named.
    WebHdfs,
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Tls => "tls",
            Self::S3 => "s3",
            Self::WebHdfs => "webhdfs",
        })
    }
}

/// The object in the address of the server, for everybody who takes part.
pub(crate) const KEY: &str = "data.bin";
/// The bucket in which it is for S3.
pub(crate) const BUCKET: &str = "bucket";
pub(crate) const REGION: &str = "us-east-1";
/// Keys of nobody: they sign, and the server does not look.
pub(crate) const ACCESS_KEY: &str = "AKIABENCHBENCHBENCH1";
pub(crate) const SECRET_KEY: &str = "bench/bench+bench/bench+bench/bench+benc";
