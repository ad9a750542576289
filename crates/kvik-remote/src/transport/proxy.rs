//! Which requests go by which proxy: what the caller or the settings say, for each host that is asked.

use std::fmt;

use kvik_config::{Config, Key, ProxyUrl};
use kvik_core::{ErrorKind, Result};
use url::Url;

use super::bypass::Bypass;
use crate::endpoint::authorization;
use crate::failure::Failure;
use crate::location::UserInfo;
use crate::percent;
use crate::tls::spoken;

/// The proxies of a client, one for each scheme.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    without: Option<Bypass>,
}

/// A proxy, and who named it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Proxy {
    url: ProxyUrl,
    by: String,
}

impl Proxies {
    /// By the caller's argument: that proxy for all that is asked, whatever the settings say.
    ///
    /// # Errors
    /// As for [`Proxy::to_url`].
    pub(crate) fn by_caller(url: &ProxyUrl) -> Result<Proxies, Failure> {
        let proxy = Proxy {
            url: url.clone(),
            by: CALLER.to_owned(),
        };
        proxy.to_url()?;
        Ok(Proxies {
            http: Some(proxy.clone()),
            https: Some(proxy),
            without: None,
        })
    }

    /// What the settings say.
    ///
    /// # Errors
    /// `Config` for a setting that cannot be used.
    pub(crate) fn of(config: &Config) -> Result<Proxies> {
        let said = |url: Option<ProxyUrl>, key| {
            url.map(|url| Proxy {
                url,
                by: spoken(&config.origin(key)),
            })
        };
        let all = said(config.all_proxy()?, Key::AllProxy);
        let http = said(config.http_proxy()?, Key::HttpProxy).or_else(|| all.clone());
        let https = said(config.https_proxy()?, Key::HttpsProxy).or(all);
        if http.is_none() && https.is_none() {
            return Ok(Proxies::default());
        }
        let rules = config.no_proxy()?.unwrap_or_default();
        Ok(Proxies {
            http,
            https,
            without: Some(Bypass::of(&rules)),
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.http.is_none() && self.https.is_none()
    }

    /// What no text may show: whoever is asked by a proxy may be told these by it.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let proxies = [&self.http, &self.https].into_iter().flatten();
        let urls = proxies.filter_map(|proxy| proxy.to_url().ok());
        let text = |part: &str| String::from_utf8_lossy(&percent::decode(part)).into_owned();
        // Without them there is a pair all the same, which is no secret.
        let named = urls.filter(|url| !url.username().is_empty() || url.password().is_some());
        let secrets = named.flat_map(|url| {
            let info = UserInfo {
                user: text(url.username()),
                password: text(url.password().unwrap_or_default()),
            };
            let pair = authorization::pair(&info);
            [info.user, info.password, pair]
        });
        secrets.collect()
    }

    /// The proxy by which this URL is asked for.
    pub(crate) fn for_url(&self, url: &Url) -> Option<&Proxy> {
        let proxy = match url.scheme() {
            "https" => self.https.as_ref(),
            _ => self.http.as_ref(),
        }?;
        let without = self.without.as_ref();
        let passes = without.is_some_and(|rules| rules.covers(url));
        (!passes).then_some(proxy)
    }
}

impl Proxy {
    /// Where it is, with name and password.
    ///
    /// # Errors
    /// `Config` if that is no URL of a proxy, or `Misuse` if it is the caller's; `Unsupported` for one that we do not speak
    /// with.
    pub(crate) fn to_url(&self) -> Result<Url, Failure> {
        let said = self.url.as_str();
        // As everywhere: a host and a port are enough.
        let parsed = match said.contains("://") {
            true => Url::parse(said),
            false => Url::parse(&format!("http://{said}")),
        };
        let wrong = |kind, why: &str| Failure::lasting(kind, format!("{self}: {why}"));
        let bad = match self.by == CALLER {
            true => ErrorKind::Misuse,
            false => ErrorKind::Config,
        };
        let url = parsed.map_err(|_| wrong(bad, "that is no URL"))?;
        match url.scheme() {
            "http" | "https" if url.has_host() => Ok(url),
            scheme if scheme.starts_with("socks") => {
                let why =
                    "proxies of SOCKS are not used by this version, those of http and https are";
                Err(wrong(ErrorKind::Unsupported, why))
            }
            _ => Err(wrong(bad, "a proxy has a URL of http or https")),
        }
    }
}

/// Without name and password.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy {} (from {})", self.url, self.by)
    }
}

// As elsewhere in errors: who said it.
const CALLER: &str = "the caller";
