//! S3, and stores that speak like it: where the object is asked for, and by whom.

use std::fmt;
use std::str::FromStr;

use http::{HeaderMap, HeaderValue, Method};
use kvik_core::{Error, ErrorKind, Op, Result};

use super::{Ask, Endpoint, Moment, Request, ask_for, given, other_kind};
use crate::location::{
    Found, Kind, Location, Object, Site, Style, WebUrl, is_aws_host, read_endpoint, suffix_of,
};
use crate::sign::sign;

/// Where the bucket stands in a request to an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Addressing {
    /// At AWS in the host, where the bucket can be a part of one; at any other endpoint in the path, which most stores take.
    #[default]
    Auto,
    /// In the path: `https://HOST/BUCKET/KEY`.
    Path,
    /// In the host: `https://BUCKET.HOST/KEY`.
    VirtualHost,
}

impl FromStr for Addressing {
    type Err = Error;

    /// `auto`, `path` or `virtual`, as profiles of AWS's tools have it.
    fn from_str(text: &str) -> Result<Addressing> {
        match text.trim().to_ascii_lowercase().as_str() {
            "auto" => Ok(Addressing::Auto),
            "path" => Ok(Addressing::Path),
            "virtual" => Ok(Addressing::VirtualHost),
            _ => {
                let why = "the addressing style of S3 is auto, path or virtual, and nothing else";
                Err(Error::new(ErrorKind::Config, Op::Configure, why))
            }
        }
    }
}

impl fmt::Display for Addressing {
    /// As it is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Addressing::Auto => "auto",
            Addressing::Path => "path",
            Addressing::VirtualHost => "virtual",
        })
    }
}

/// What holds for an object of S3 besides its location. Its `Debug` shows no secret.
#[derive(Clone, Default)]
pub struct S3Options {
    /// The endpoint, as `http` or `https` URL, for a location that names no host itself. None is AWS.
    pub endpoint: Option<String>,
    /// Where the bucket stands, for such a location.
    pub addressing: Addressing,
    /// The region that the caller names.
    pub region: Option<String>,
    /// The region by the environment or a profile, where neither the caller nor the URL names one.
    pub default_region: Option<String>,
    /// Whether the caller pays for reading somebody else's object.
    pub requester_pays: bool,
    /// More headers, all of which are signed.
    pub headers: HeaderMap,
}

impl fmt::Debug for S3Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Options")
            .field("has_endpoint", &self.endpoint.is_some())
            .field("addressing", &self.addressing)
            .field("region", &self.region)
            .field("default_region", &self.default_region)
            .field("requester_pays", &self.requester_pays)
            .finish_non_exhaustive()
    }
}

/// An object of S3, with signed requests where there are keys.
#[derive(Clone, Debug)]
pub struct S3Endpoint {
    object: Object,
    signs: bool,
    base: Option<WebUrl>,
    addressing: Addressing,
    region: Option<String>,
    default_region: Option<String>,
    headers: HeaderMap,
}

impl S3Endpoint {
    /// The object at `location`. One of the kind [`Kind::S3Public`] is never signed for.
    ///
    /// # Errors
    /// `Misuse` for a location of another kind; `Config` for an endpoint that is no `http` or `https` URL, has a query or
    /// names a user, and for [`Addressing::VirtualHost`] of a bucket that cannot be a part of a host.
    pub fn new(location: &Location, options: S3Options) -> Result<S3Endpoint> {
        let Found::Object(object) = location.found() else {
            return Err(other_kind("S3"));
        };
        let base = match (&options.endpoint, object.site()) {
            (Some(endpoint), None) => Some(read_endpoint(endpoint)?),
            _ => None,
        };
        let free = object.site().is_none();
        if free && options.addressing == Addressing::VirtualHost && !object.is_host() {
            let why = format!(
                "the bucket `{}` cannot be a part of a host",
                object.bucket().escape_debug()
            );
            return Err(Error::new(ErrorKind::Config, Op::Open, why));
        }
        let mut headers = given(&options.headers);
        if options.requester_pays {
            headers.insert("x-amz-request-payer", HeaderValue::from_static("requester"));
        }
        Ok(S3Endpoint {
            object: object.clone(),
            signs: location.kind() == Kind::S3,
            base,
            addressing: options.addressing,
            region: options.region,
            default_region: options.default_region,
            headers,
        })
    }

    /// The same object addressed the other way, for a store that does not take the first: only where [`Addressing::Auto`]
    /// had to choose for an endpoint that is not AWS's.
    #[must_use]
    pub fn addressed_otherwise(&self) -> Option<S3Endpoint> {
        let base = self.base.as_ref()?;
        let chose = self.addressing == Addressing::Auto && !is_aws_host(base.host());
        (chose && self.object.is_host() && base.has_name()).then(|| S3Endpoint {
            addressing: Addressing::VirtualHost,
            ..self.clone()
        })
    }

    /// The bucket.
    pub(crate) fn bucket(&self) -> &str {
        self.object.bucket()
    }

    /// Which server knows the bucket by its name: the endpoint, or AWS in one of its two parts.
    pub(crate) fn server(&self) -> String {
        match &self.base {
            Some(base) => base.to_string(),
            None => suffix_of(self.region_in_use(None)).to_owned(),
        }
    }

    /// The region that requests are for, where a server said `learnt` or nothing.
    pub(crate) fn region_in_use<'a>(&'a self, learnt: Option<&'a str>) -> &'a str {
        let first = || self.object.site().map_or(FIRST_REGION, Site::first_region);
        self.region(learnt).unwrap_or_else(first)
    }

    /// Where requests go, without secrets.
    pub(crate) fn address(&self, learnt: Option<&str>) -> String {
        self.url(learnt).to_string()
    }

    /// Where the bucket stands in that; never [`Addressing::Auto`].
    pub(crate) fn addressing(&self) -> Addressing {
        match self.style() {
            Style::Path => Addressing::Path,
            Style::VirtualHost => Addressing::VirtualHost,
        }
    }

    /// The region that a signature at this moment is for: as a server said, else as the caller said, else as the host says,
    /// else as the settings say.
    fn region<'a>(&'a self, learnt: Option<&'a str>) -> Option<&'a str> {
        let of_host = self.object.site().and_then(Site::region);
        learnt
            .or(self.region.as_deref())
            .or(of_host)
            .or(self.default_region.as_deref())
    }

    fn url(&self, learnt: Option<&str>) -> WebUrl {
        if let Some(site) = self.object.site() {
            // The host stays as the caller wrote it, until a server says that the bucket is elsewhere.
            return site.url_in(self.object.bucket(), learnt);
        }
        match &self.base {
            Some(base) => self.object.url_at(base, self.style()),
            None => self.object.url_at_aws(self.region(learnt), self.style()),
        }
    }

    /// Where the bucket stands in the URL that requests go to.
    fn style(&self) -> Style {
        match (self.object.site(), self.addressing) {
            // As the caller wrote it.
            (Some(site), _) => site.style(),
            (None, Addressing::Path) => Style::Path,
            (None, Addressing::VirtualHost) => Style::VirtualHost,
            (None, Addressing::Auto) => {
                let is_aws = self
                    .base
                    .as_ref()
                    .is_none_or(|base| is_aws_host(base.host()));
                // The certificates of AWS are for one label before the service, so a bucket with a dot goes into the path.
                match is_aws && self.object.is_label() {
                    true => Style::VirtualHost,
                    false => Style::Path,
                }
            }
        }
    }
}

impl Endpoint for S3Endpoint {
    fn request(&self, ask: &Ask, moment: &Moment<'_>) -> Result<Request> {
        let method = match ask {
            Ask::Length => Method::HEAD,
            Ask::Range(_) | Ask::Whole => Method::GET,
        };
        let mut request = Request::new(method, self.url(moment.region).to_send());
        request.headers = self.headers.clone();
        if let Some(keys) = moment.keys.filter(|_| self.signs) {
            let region = self.region_in_use(moment.region);
            sign(&mut request, keys, region, moment.now)?;
        }
        // After the signature, which is to serve other ranges too.
        ask_for(ask, request)
    }
}

// The region of the host of all regions. A server that holds the bucket elsewhere says where.
const FIRST_REGION: &str = "us-east-1";

#[cfg(test)]
#[path = "s3_tests.rs"]
mod tests;
