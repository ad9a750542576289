//! Profiles of AWS's tools: the files `config` and `credentials`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kvik_core::{Error, ErrorKind, Op, Place, Result};

use super::ini::{self, Values};
use super::{Credentials, Finding, Keys, environment, unusable};

/// Which files hold profiles, and which profile is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileFiles {
    config: Option<PathBuf>,
    credentials: Option<PathBuf>,
    /// `None` is the profile `default`, which need not be there.
    name: Option<String>,
}

impl ProfileFiles {
    /// What the variables name: `AWS_CONFIG_FILE`, `AWS_SHARED_CREDENTIALS_FILE`, `AWS_PROFILE` and, for the folder `.aws`,
    /// `HOME`. A `name` given here is meant before `AWS_PROFILE`.
    ///
    /// # Errors
    /// `Config` if `AWS_PROFILE` is no readable text.
    pub fn from_lookup(
        lookup: impl Fn(&str) -> Option<OsString>,
        name: Option<&str>,
    ) -> Result<ProfileFiles> {
        let home = lookup("HOME")
            .filter(|home| !home.is_empty())
            .map(PathBuf::from);
        let file = |variable: &str, own: &str| {
            let named = lookup(variable).filter(|path| !path.is_empty());
            match (named, &home) {
                (Some(path), home) => Some(expand(&path, home.as_deref())),
                (None, Some(home)) => Some(home.join(".aws").join(own)),
                (None, None) => None,
            }
        };
        let name = match name {
            Some(name) => Some(name.to_owned()),
            None => environment::text(&lookup, "AWS_PROFILE")?,
        };
        Ok(ProfileFiles {
            config: file("AWS_CONFIG_FILE", "config"),
            credentials: file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
            name,
        })
    }

    /// Reads the files and picks the profile; `None` where none was named and there is no `default`.
    ///
    /// # Errors
    /// `Config` for a profile that was named and is in no file, with the files that were looked at, and for a line that
    /// cannot be understood; what the system says about a file that is there and cannot be read.
    pub fn profile(&self) -> Result<Option<Profile>> {
        let [config, credentials] =
            [&self.config, &self.credentials].map(|path| read(path.as_deref()));
        let profiles = Profiles::read(&config?, &credentials?).map_err(|(file, line)| {
            let path = match file {
                File::Config => &self.config,
                File::Credentials => &self.credentials,
            };
            let path = path.as_deref().unwrap_or(Path::new(""));
            unusable(format!(
                "line {line} of {} is neither a section nor a value",
                path.display()
            ))
        })?;
        let profile = profiles.get(self.name.as_deref().unwrap_or("default"));
        match (&profile, &self.name) {
            (None, Some(name)) => Err(unusable(format!(
                "there is no profile `{name}` in {}",
                self.places()
            ))),
            _ => Ok(profile),
        }
    }

    fn places(&self) -> String {
        let paths = [&self.config, &self.credentials].into_iter().flatten();
        let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
        match paths.is_empty() {
            true => "any file, as neither HOME nor AWS_CONFIG_FILE says where they are".to_owned(),
            false => paths.join(" and "),
        }
    }
}

impl Credentials for ProfileFiles {
    fn find(&self) -> Finding<'_> {
        Box::pin(async {
            match self.profile()? {
                Some(profile) => profile.keys(),
                None => Ok(None),
            }
        })
    }
}

impl fmt::Display for ProfileFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("default");
        write!(f, "the profile `{name}` in {}", self.places())
    }
}

/// One of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// `config`, which has settings and may have keys.
    Config,
    /// `credentials`, whose keys come first.
    Credentials,
}

/// All profiles of the two files. Pure.
pub struct Profiles {
    config: BTreeMap<String, Values>,
    credentials: BTreeMap<String, Values>,
}

impl Profiles {
    /// Reads the texts of both files.
    ///
    /// # Errors
    /// The file, and the number of the line in it, that cannot be understood.
    pub fn read(config: &str, credentials: &str) -> Result<Profiles, (File, usize)> {
        Ok(Profiles {
            config: ini::read(config).map_err(|line| (File::Config, line))?,
            credentials: ini::read(credentials).map_err(|line| (File::Credentials, line))?,
        })
    }

    /// The profile `name`, if one of the files has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Profile> {
        let config = self.config.get(&format!("profile {name}"));
        // Only this one may do without the word, and only where it is not there with it.
        let bare = || self.config.get(name).filter(|_| name == "default");
        let config = config.or_else(bare);
        let credentials = self.credentials.get(name);
        if config.is_none() && credentials.is_none() {
            return None;
        }
        let config = config.cloned().unwrap_or_default();
        let services = config
            .get("services")
            .and_then(|services| self.config.get(&format!("services {services}")));
        Some(Profile {
            name: name.to_owned(),
            services: services.cloned().unwrap_or_default(),
            config,
            credentials: credentials.cloned().unwrap_or_default(),
        })
    }
}

/// What both files say about one profile. Its `Debug` shows the name only.
pub struct Profile {
    name: String,
    config: Values,
    credentials: Values,
    services: Values,
}

impl Profile {
    /// The keys that stand in the files.
    ///
    /// # Errors
    /// `Config` for half a pair; `Unsupported` for a profile whose keys come from somewhere else: a role, single sign-on,
    /// another program.
    pub fn keys(&self) -> Result<Option<Keys>> {
        let origin = format!("the profile `{}`", self.name);
        // A role stands above the keys by which it is taken.
        self.refuse(&["role_arn"])?;
        for values in [&self.credentials, &self.config] {
            let [id, secret, token] = [ID, SECRET, TOKEN].map(|name| said(values, name));
            let keys = Keys::of_pair(id, secret, token, &origin, [ID, SECRET])?;
            if keys.is_some() {
                return Ok(keys);
            }
        }
        self.refuse(&ELSEWHERE)?;
        Ok(None)
    }

    /// The region.
    #[must_use]
    pub fn region(&self) -> Option<String> {
        self.value("region")
    }

    /// The endpoint for S3, by the section of services or for all services.
    #[must_use]
    pub fn endpoint_url(&self) -> Option<String> {
        said(&self.services, "s3.endpoint_url").or_else(|| self.value("endpoint_url"))
    }

    /// The file of certificates.
    #[must_use]
    pub fn ca_bundle(&self) -> Option<String> {
        self.value("ca_bundle")
    }

    /// The style in which S3 is addressed: `auto`, `path` or `virtual`, as it stands there.
    #[must_use]
    pub fn addressing_style(&self) -> Option<String> {
        self.value("s3.addressing_style")
    }

    /// Whether endpoints are to be passed over, wherever they are configured.
    #[must_use]
    pub fn ignores_endpoints(&self) -> bool {
        let said = self.value("ignore_configured_endpoint_urls");
        said.is_some_and(|said| said.eq_ignore_ascii_case("true"))
    }

    /// The name of the profile.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn value(&self, name: &str) -> Option<String> {
        said(&self.config, name).or_else(|| said(&self.credentials, name))
    }

    fn refuse(&self, names: &[&str]) -> Result<()> {
        match names.iter().find(|name| self.value(name).is_some()) {
            Some(name) => {
                let why = format!(
                    "the profile `{}` gets its keys by {name}, which this version does not do",
                    self.name
                );
                Err(Error::new(ErrorKind::Unsupported, Op::Configure, why))
            }
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Profile({})", self.name)
    }
}

impl fmt::Debug for Profiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sections = self.config.len() + self.credentials.len();
        write!(f, "Profiles({sections} sections)")
    }
}

fn said(values: &Values, name: &str) -> Option<String> {
    values.get(name).filter(|value| !value.is_empty()).cloned()
}

/// A file that is not there has nothing to say.
fn read(path: Option<&Path>) -> Result<String> {
    let Some(path) = path else {
        return Ok(String::new());
    };
    let refused = |error: Error| error.at(&Place::from(path));
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(refused(Error::io(Op::Configure, error))),
    };
    String::from_utf8(bytes)
        .map_err(|_| refused(unusable("the file is no readable text".to_owned())))
}

fn expand(path: &OsStr, home: Option<&Path>) -> PathBuf {
    let path = Path::new(path);
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

const ID: &str = "aws_access_key_id";
const SECRET: &str = "aws_secret_access_key";
const TOKEN: &str = "aws_session_token";
/// Whatever makes keys that do not stand in the files.
const ELSEWHERE: [&str; 6] = [
    "credential_process",
    "credential_source",
    "login_session",
    "sso_session",
    "sso_start_url",
    "web_identity_token_file",
];

#[cfg(test)]
#[path = "profile_tests.rs"]
mod tests;
