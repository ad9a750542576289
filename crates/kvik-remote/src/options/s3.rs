//! What a caller may say of an object of S3: keys, region, endpoint, addressing.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use kvik_core::{Error, ErrorKind, Op, Result};

use super::RemoteOptions;
use crate::credentials::{AwsSettings, Chain, Credentials, Keys, ProfileFiles, Said};
use crate::endpoint::{Addressing, S3Endpoint, S3Options};
use crate::location::{Kind, Location};
use crate::store::{Account, Store};
use crate::tls::Trust;

/// Whether objects of S3 are asked for without a signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Anonymous {
    /// Where there are no keys. Keys that are wrong, or broken, are an error and never no keys.
    #[default]
    Auto,
    /// Always: no keys are looked for.
    Always,
    /// Never: no keys are an error.
    Never,
}

/// What was said of S3. Its `Debug` shows no secret.
#[derive(Clone, Default)]
pub(super) struct S3Wishes {
    pub(super) credentials: Option<Arc<dyn Credentials>>,
    pub(super) profile: Option<String>,
    pub(super) anonymous: Anonymous,
    pub(super) region: Option<String>,
    pub(super) endpoint: Option<String>,
    pub(super) addressing: Option<Addressing>,
    pub(super) requester_pays: bool,
}

impl fmt::Debug for S3Wishes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.credentials.as_ref().map(ToString::to_string);
        f.debug_struct("S3")
            .field("credentials", &source)
            .field("profile", &self.profile)
            .field("anonymous", &self.anonymous)
            .field("region", &self.region)
            .field("has_endpoint", &self.endpoint.is_some())
            .field("addressing", &self.addressing)
            .field("requester_pays", &self.requester_pays)
            .finish()
    }
}

/// Objects of S3. What is not said here the variables of the environment say, then the profile.
///
/// # Example: a store of one's own
/// ```no_run
/// use kvik_remote::{Keys, RemoteHandle};
///
/// let options = RemoteHandle::builder()
///     .endpoint_url("http://127.0.0.1:9000")
///     .keys(Keys::new("the id", "the secret key"));
/// let object = options.open("s3://bucket/weights.bin")?;
/// # Ok::<(), kvik_core::Error>(())
/// ```
impl RemoteOptions {
    /// The keys to sign with.
    pub fn keys(self, keys: Keys) -> RemoteOptions {
        self.credentials(keys)
    }

    /// The source of the keys to sign with, in place of the environment and the profile. It is asked when an object is
    /// opened, when its keys end, and after a refusal.
    pub fn credentials(mut self, source: impl Credentials + 'static) -> RemoteOptions {
        self.s3.credentials = Some(Arc::new(source));
        self
    }

    /// The profile of AWS's files that holds keys, region and endpoint, in place of that of `AWS_PROFILE`. Its keys come
    /// before those of the environment.
    pub fn profile(mut self, name: &str) -> RemoteOptions {
        self.s3.profile = Some(name.to_owned());
        self
    }

    /// Whether objects are asked for without a signature.
    pub fn anonymous(mut self, when: Anonymous) -> RemoteOptions {
        self.s3.anonymous = when;
        self
    }

    /// The region of the bucket, in place of `AWS_REGION`, `AWS_DEFAULT_REGION` and the profile's. A server that says
    /// another one is believed.
    pub fn region(mut self, name: &str) -> RemoteOptions {
        self.s3.region = Some(name.to_owned());
        self
    }

    /// The `http` or `https` URL of the store for `s3:` URLs, in place of `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL` and the
    /// profile's. Without any it is AWS.
    pub fn endpoint_url(mut self, url: &str) -> RemoteOptions {
        self.s3.endpoint = Some(url.to_owned());
        self
    }

    /// Where the bucket stands in a request to the endpoint. Unless said otherwise, in the path, and in the host where a
    /// store does not take that.
    pub fn addressing(mut self, style: Addressing) -> RemoteOptions {
        self.s3.addressing = Some(style);
        self
    }

    /// Whether the caller pays for reading somebody else's object.
    pub fn requester_pays(mut self, pays: bool) -> RemoteOptions {
        self.s3.requester_pays = pays;
        self
    }

    /// The object at `location`, with what the environment and the profile say. A profile may say whom to `trust`, where
    /// nobody else does.
    pub(super) fn store(&self, location: &Location, trust: &mut Trust) -> Result<Store> {
        let wishes = &self.s3;
        let variable = kvik_config::variable;
        let profile = ProfileFiles::from_lookup(variable, wishes.profile.as_deref())?.profile()?;
        let settings = AwsSettings::read(variable, profile.as_ref())?;
        if let (Trust::System(_), Some(said)) = (&*trust, settings.ca_bundle) {
            *trust = Trust::Named {
                file: Some(PathBuf::from(said.value)),
                folders: None,
                by: said.origin,
            };
        }
        let account = match (location.kind(), wishes.anonymous) {
            (Kind::S3Public, _) | (_, Anonymous::Always) => Account::Nobody,
            (_, Anonymous::Auto) => Account::IfAny(self.source()?),
            (_, Anonymous::Never) => Account::Always(self.source()?),
        };
        if !matches!(account, Account::Nobody) && self.headers.contains_key(AUTHORIZATION) {
            let why =
                "a token or password was given for an object of S3, which is asked for with keys";
            return Err(Error::new(ErrorKind::Misuse, Op::Open, why));
        }
        let addressing = match (wishes.addressing, &settings.addressing_style) {
            (Some(style), _) => style,
            (None, Some(said)) => said.value.parse()?,
            (None, None) => Addressing::Auto,
        };
        let said = settings.endpoint_url.map(|said| said.value);
        let options = S3Options {
            endpoint: wishes.endpoint.clone().or(said),
            addressing,
            region: wishes.region.clone(),
            default_region: settings.region.map(|said| said.value),
            requester_pays: wishes.requester_pays,
            headers: self.headers.clone(),
        };
        Ok(Store::new(S3Endpoint::new(location, options)?, account))
    }

    /// The endpoint and the region, each with who says it.
    pub(super) fn said_of_store(&self) -> Result<(Option<Said>, Option<Said>)> {
        let wishes = &self.s3;
        let variable = kvik_config::variable;
        let profile = ProfileFiles::from_lookup(variable, wishes.profile.as_deref())?.profile()?;
        let settings = AwsSettings::read(variable, profile.as_ref())?;
        let by_caller = |value: &Option<String>| {
            let origin = "the caller".to_owned();
            value.clone().map(|value| Said { value, origin })
        };
        Ok((
            by_caller(&wishes.endpoint).or(settings.endpoint_url),
            by_caller(&wishes.region).or(settings.region),
        ))
    }

    fn source(&self) -> Result<Arc<dyn Credentials>> {
        match &self.s3.credentials {
            Some(source) => Ok(Arc::clone(source)),
            None => {
                let profile = self.s3.profile.as_deref();
                Ok(Arc::new(Chain::standard(kvik_config::variable, profile)?))
            }
        }
    }
}
