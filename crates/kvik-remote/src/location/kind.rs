//! [`Kind`]: the protocols.

use std::fmt;
use std::str::FromStr;

use kvik_core::{Error, ErrorKind, Op, Result};

use super::Location;

/// By which protocol a remote object is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// S3, or a store that speaks like it, with signed requests.
    S3,
    /// The same without any signature.
    S3Public,
    /// A URL of S3 that has its signature in the query.
    S3Presigned,
    /// HDFS, by its REST interface.
    WebHdfs,
    /// Any other server of HTTP.
    Http,
}

impl Kind {
    /// All kinds, in the order in which a URL is tried for them.
    pub const ALL: [Kind; 5] = [
        Kind::S3,
        Kind::S3Public,
        Kind::S3Presigned,
        Kind::WebHdfs,
        Kind::Http,
    ];

    /// The first kind of `allow`, in its order, that `url` can be. No server is asked.
    ///
    /// # Errors
    /// As for [`Location::parse_among`].
    ///
    /// # Example: what may be read without keys
    /// ```
    /// use kvik_remote::Kind;
    ///
    /// let url = "https://logs.s3.amazonaws.com/a.bin";
    /// assert_eq!(Kind::infer(url, &Kind::ALL)?, Kind::S3);
    /// assert_eq!(Kind::infer(url, &[Kind::S3Public, Kind::Http])?, Kind::S3Public);
    /// assert!(Kind::infer(url, &[Kind::WebHdfs]).is_err());
    /// # Ok::<(), kvik_core::Error>(())
    /// ```
    pub fn infer(url: &str, allow: &[Kind]) -> Result<Kind> {
        Ok(Location::parse_among(url, allow)?.kind())
    }
}

impl FromStr for Kind {
    type Err = Error;

    /// `s3`, `s3-public`, `s3-presigned`, `webhdfs` or `http`, with or without hyphens, in any case; and what is printed.
    fn from_str(text: &str) -> Result<Kind> {
        let letters = |c: &char| !matches!(c, ' ' | '-' | '_');
        let word: String = text.to_ascii_lowercase().chars().filter(letters).collect();
        match word.as_str() {
            "s3" => Ok(Kind::S3),
            "s3public" => Ok(Kind::S3Public),
            "s3presigned" | "s3presignedurl" | "s3withpresignedurl" => Ok(Kind::S3Presigned),
            "webhdfs" => Ok(Kind::WebHdfs),
            "http" => Ok(Kind::Http),
            _ => {
                let why = "a kind of object is s3, s3-public, s3-presigned, webhdfs or http";
                Err(Error::new(ErrorKind::Misuse, Op::Configure, why))
            }
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::S3 => "S3",
            Kind::S3Public => "S3 public",
            Kind::S3Presigned => "S3 with presigned URL",
            Kind::WebHdfs => "WebHDFS",
            Kind::Http => "HTTP",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_as_it_is_printed_and_as_a_word() {
        for kind in Kind::ALL {
            assert_eq!(kind.to_string().parse::<Kind>().unwrap(), kind);
            let upper = kind.to_string().to_uppercase().replace(' ', "_");
            assert_eq!(upper.parse::<Kind>().unwrap(), kind, "{upper}");
        }
        assert_eq!(" s3-presigned ".parse::<Kind>().unwrap(), Kind::S3Presigned);
        for text in ["", "ftp", "s4", "http, s3"] {
            let error = text.parse::<Kind>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse, "{text}");
        }
    }
}
