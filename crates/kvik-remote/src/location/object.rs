//! An object of S3: bucket and key, and where a URL says that they are.

use std::fmt;

use kvik_core::Result;

use super::url::WebUrl;
use super::{host, refused};
use crate::percent;
use crate::redact;

/// Where a request has the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Style {
    /// At the beginning of the path.
    Path,
    /// At the beginning of the host.
    VirtualHost,
}

/// An object of S3.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Object {
    bucket: String,
    /// As it goes out.
    key: String,
    /// As it goes out.
    query: Option<String>,
    site: Option<Site>,
}

/// The host of AWS that a URL names.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Site {
    /// The whole URL, for scheme and port, and for its host where no region is learnt.
    url: WebUrl,
    style: Style,
    service: String,
    region: Option<String>,
    suffix: &'static str,
}

impl Object {
    /// The object with the encoded `key`, wherever its bucket is.
    pub(super) fn new(bucket: &str, key: String, query: Option<String>) -> Result<Object> {
        if bucket.is_empty() {
            return Err(refused("no bucket is named"));
        }
        // The last two would be taken for directories, and lead to another bucket.
        if bucket.contains('/')
            || bucket.chars().any(char::is_control)
            || [".", ".."].contains(&bucket)
        {
            return Err(refused(
                "the name of the bucket is none that a bucket can have",
            ));
        }
        if key.is_empty() {
            return Err(refused("a bucket is named and no object of it"));
        }
        Ok(Object {
            bucket: bucket.to_owned(),
            key,
            query,
            site: None,
        })
    }

    /// The object that a URL names by a host of AWS.
    pub(super) fn of_url(url: &WebUrl) -> Option<Object> {
        if url.user_info().is_some() {
            return None;
        }
        let shape = host::read(url.host())?;
        let path = url.path().strip_prefix('/')?;
        let (style, bucket, key) = match shape.bucket {
            Some(bucket) => (Style::VirtualHost, bucket, path),
            None => {
                let (bucket, key) = path.split_once('/')?;
                (Style::Path, bucket, key)
            }
        };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        if !bucket.bytes().all(plain) {
            return None;
        }
        let site = Site {
            style,
            service: shape.service.to_owned(),
            region: shape.region.map(str::to_owned),
            suffix: shape.suffix,
            url: url.clone(),
        };
        let query = url.query().map(str::to_owned);
        let object = Object::new(bucket, key.to_owned(), query).ok()?;
        Some(Object {
            site: Some(site),
            ..object
        })
    }

    pub(crate) fn bucket(&self) -> &str {
        &self.bucket
    }

    /// The key as it goes out, encoded.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The query as it goes out.
    pub(crate) fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    pub(crate) fn site(&self) -> Option<&Site> {
        self.site.as_ref()
    }

    /// The object at `base`, whose own path goes before bucket and key.
    pub(crate) fn url_at(&self, base: &WebUrl, style: Style) -> WebUrl {
        let before = base.path().trim_end_matches('/');
        let url = base.clone().with_query(self.query.clone());
        match style {
            Style::Path => {
                let bucket = percent::encode_component(self.bucket.as_bytes());
                url.with_path(format!("{before}/{bucket}/{}", self.key))
            }
            Style::VirtualHost => {
                let host = format!("{}.{}", self.bucket, base.host());
                url.with_host(host)
                    .with_path(format!("{before}/{}", self.key))
            }
        }
    }

    /// The object at AWS itself, in `region` or by the host of all regions.
    pub(crate) fn url_at_aws(&self, region: Option<&str>, style: Style) -> WebUrl {
        let host = match region {
            Some(region) => format!("s3.{region}.{}", host::suffix_of(region)),
            None => format!("s3.{}", host::suffix_of("")),
        };
        self.url_at(&WebUrl::of_host(host), style)
    }

    /// Whether the bucket can be labels of a host.
    pub(crate) fn is_host(&self) -> bool {
        self.bucket.split('.').all(is_label)
    }

    /// Whether the bucket can be one label of a host.
    pub(crate) fn is_label(&self) -> bool {
        is_label(&self.bucket)
    }
}

impl Site {
    /// Where the bucket stands in the URL.
    pub(crate) fn style(&self) -> Style {
        self.style
    }

    /// The region that the host names.
    pub(crate) fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    /// The region of a host that names none, until the server says which one the bucket is in.
    pub(crate) fn first_region(&self) -> &'static str {
        host::first_region(self.suffix)
    }

    /// The URL as given; for another region than its host names, at the same service of that region, where it has one.
    pub(crate) fn url_in(&self, bucket: &str, region: Option<&str>) -> WebUrl {
        let Some(region) = region.filter(|region| self.region() != Some(*region)) else {
            return self.url.clone();
        };
        if !host::moves(&self.service) {
            return self.url.clone();
        }
        let service = format!("{}.{region}.{}", self.service, self.suffix);
        let host = match self.style {
            Style::Path => service,
            Style::VirtualHost => format!("{bucket}.{service}"),
        };
        self.url.clone().with_host(host)
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({self})")
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(site) = &self.site {
            return site.url.fmt(f);
        }
        let bucket = percent::encode_component(self.bucket.as_bytes());
        write!(f, "s3://{bucket}/{}", self.key)?;
        match &self.query {
            Some(query) => write!(f, "?{}", redact::query(query)),
            None => Ok(()),
        }
    }
}

fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(plain)
        && !text.starts_with('-')
        && !text.ends_with('-')
}
