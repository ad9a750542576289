//! Whose requests they are: [`Keys`], and the sources that they come from.
//!
//! A source is a [`Credentials`]; a [`Chain`] asks several in turn. A source that has nothing passes the question on; one
//! that has something broken ends it: half a pair of keys, or a profile that is not there, never becomes somebody else.

mod environment;
mod ini;
mod profile;
mod settings;

use std::ffi::OsString;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use kvik_core::{Error, ErrorKind, Op, Result};

pub use environment::Environment;
pub use profile::{Profile, ProfileFiles, Profiles};
pub use settings::{AwsSettings, Said};

/// The keys of an account of S3. Neither `Debug` nor any error shows more than the beginning of the key's id and where it
/// came from.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    id: String,
    secret: String,
    token: Option<String>,
    expires: Option<SystemTime>,
    origin: Arc<str>,
}

impl Keys {
    /// The keys of this id, as the caller gave them.
    #[must_use]
    pub fn new(id: impl Into<String>, secret: impl Into<String>) -> Keys {
        Keys {
            id: id.into(),
            secret: secret.into(),
            token: None,
            expires: None,
            origin: "the caller".into(),
        }
    }

    /// With the session token that belongs to them.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Keys {
        self.token = Some(token.into());
        self
    }

    /// With the time from which on the server refuses them.
    #[must_use]
    pub fn expires(mut self, at: SystemTime) -> Keys {
        self.expires = Some(at);
        self
    }

    /// With the name of where they came from, for people to read.
    #[must_use]
    pub fn from_source(mut self, origin: impl Into<Arc<str>>) -> Keys {
        self.origin = origin.into();
        self
    }

    /// The id of the key, which goes out with every request.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// From when on the server refuses them, where that is known.
    #[must_use]
    pub fn expiry(&self) -> Option<SystemTime> {
        self.expires
    }

    /// Where they came from.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// What of them must not be shown.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = vec![self.secret.clone()];
        secrets.extend(self.token.clone());
        secrets
    }

    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }

    pub(crate) fn session_token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// A pair that a source has, or half of it, or nothing. The token belongs to the pair, and is not looked at without it.
    fn of_pair(
        id: Option<String>,
        secret: Option<String>,
        token: Option<String>,
        origin: &str,
        names: [&str; 2],
    ) -> Result<Option<Keys>> {
        match (id, secret) {
            (None, None) => Ok(None),
            (Some(id), Some(secret)) => {
                let keys = Keys::new(id, secret).from_source(origin);
                Ok(Some(Keys { token, ..keys }))
            }
            (id, _) => {
                let [has, lacks] = match id {
                    Some(_) => names,
                    None => [names[1], names[0]],
                };
                Err(unusable(format!("{origin} has {has} and no {lacks}")))
            }
        }
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begin: String = self.id.chars().take(4).collect();
        f.debug_struct("Keys")
            .field("id", &format_args!("{begin}..."))
            .field("has_token", &self.token.is_some())
            .field("expires", &self.expires)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// What [`Credentials::find`] promises: keys, or the answer that this source has none.
pub type Finding<'a> = Pin<Box<dyn Future<Output = Result<Option<Keys>>> + Send + 'a>>;

/// A source of keys. Its `Display` says where it looks, for people to read.
///
/// # Example: a source of one's own
/// ```
/// use std::fmt;
/// use kvik_remote::{Credentials, Finding, Keys};
///
/// #[derive(Debug)]
/// struct Vault;
///
/// impl fmt::Display for Vault {
///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         f.write_str("the vault")
///     }
/// }
///
/// impl Credentials for Vault {
///     fn find(&self) -> Finding<'_> {
///         Box::pin(async { Ok(Some(Keys::new("id", "secret").from_source("the vault"))) })
///     }
/// }
/// ```
pub trait Credentials: fmt::Debug + fmt::Display + Send + Sync {
    /// Looks for keys, now.
    fn find(&self) -> Finding<'_>;
}

/// Keys that are there already.
impl Credentials for Keys {
    fn find(&self) -> Finding<'_> {
        Box::pin(async { Ok(Some(self.clone())) })
    }
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}

/// Several sources, asked in turn until one has keys or fails.
#[derive(Clone, Debug)]
pub struct Chain(Vec<Arc<dyn Credentials>>);

impl Chain {
    /// A chain of these sources, the first one first.
    #[must_use]
    pub fn new(sources: impl IntoIterator<Item = Arc<dyn Credentials>>) -> Chain {
        Chain(sources.into_iter().collect())
    }

    /// The environment, then the profile. A `profile` that the caller names is meant, whatever the environment holds.
    ///
    /// # Errors
    /// As for [`ProfileFiles::from_lookup`].
    ///
    /// # Example: the variables of this process
    /// ```
    /// use kvik_remote::Chain;
    ///
    /// let chain = Chain::standard(kvik_config::variable, Some("research"))?;
    /// assert!(chain.to_string().starts_with("the profile `research` in "));
    /// # Ok::<(), kvik_core::Error>(())
    /// ```
    pub fn standard(
        lookup: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static,
        profile: Option<&str>,
    ) -> Result<Chain> {
        let files: Arc<dyn Credentials> = Arc::new(ProfileFiles::from_lookup(&lookup, profile)?);
        Ok(match profile {
            Some(_) => Chain::new([files]),
            None => Chain::new([Arc::new(Environment::new(lookup)) as _, files]),
        })
    }
}

impl Credentials for Chain {
    fn find(&self) -> Finding<'_> {
        Box::pin(async {
            for source in &self.0 {
                if let Some(keys) = source.find().await? {
                    return Ok(Some(keys));
                }
            }
            Ok(None)
        })
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, source) in self.0.iter().enumerate() {
            let before = if at == 0 { "" } else { ", then " };
            write!(f, "{before}{source}")?;
        }
        Ok(())
    }
}

/// The error of a source that has something, but nothing that can be used.
fn unusable(why: String) -> Error {
    Error::new(ErrorKind::Config, Op::Configure, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};

    /// What a source that waits for nothing has.
    pub(super) fn found(source: &dyn Credentials) -> Result<Option<Keys>> {
        let mut finding = source.find();
        match finding
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(keys) => keys,
            Poll::Pending => panic!("{source} waits"),
        }
    }

    #[derive(Debug)]
    struct Fixed(Result<Option<Keys>>);

    impl fmt::Display for Fixed {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a fixed answer")
        }
    }

    impl Credentials for Fixed {
        fn find(&self) -> Finding<'_> {
            Box::pin(async { self.0.clone() })
        }
    }

    #[test]
    fn a_chain_ends_at_the_first_source_that_has_keys_or_fails() {
        let none = || Arc::new(Fixed(Ok(None))) as Arc<dyn Credentials>;
        let keys = |id: &str| Arc::new(Keys::new(id, "s")) as Arc<dyn Credentials>;
        let broken = || Arc::new(Fixed(Err(unusable("half".to_owned())))) as Arc<dyn Credentials>;
        let chain = Chain::new([none(), keys("first"), broken()]);
        assert_eq!(found(&chain).unwrap().unwrap().id(), "first");
        assert_eq!(
            chain.to_string(),
            "a fixed answer, then the caller, then a fixed answer"
        );
        assert!(found(&Chain::new([none(), broken(), keys("x")])).is_err());
        assert_eq!(found(&Chain::new([none()])).unwrap(), None);
    }

    #[test]
    fn a_profile_that_the_caller_names_comes_before_the_environment() {
        let lookup = |name: &str| match name {
            "AWS_ACCESS_KEY_ID" => Some("AKIA".into()),
            "AWS_SECRET_ACCESS_KEY" => Some("secret".into()),
            "AWS_PROFILE" => Some("absent".into()),
            _ => None,
        };
        let chain = Chain::standard(lookup, None).unwrap();
        assert_eq!(
            found(&chain).unwrap().expect("a pair").origin(),
            "the environment"
        );
        let chain = Chain::standard(lookup, Some("mine")).unwrap();
        assert!(
            found(&chain)
                .unwrap_err()
                .to_string()
                .contains("no profile `mine`")
        );
    }

    #[test]
    fn keys_show_no_secret() {
        let keys = Keys::new("AKIAIOSFODNN7", "hunter22").token("t0ken");
        let shown = format!("{keys:?} {keys}");
        for secret in ["hunter22", "t0ken", "IOSF"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert_eq!(keys.secrets(), ["hunter22", "t0ken"]);
    }
}
