//! Whom we trust: which certificates, and from where.

mod sessions;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kvik_config::{Config, Key, Origin};
use kvik_core::{Error, ErrorKind, Op, Result};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use rustls_native_certs::CertificateResult;

use crate::failure::Failure;

/// The certificates that a server must prove itself by.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Trust {
    /// Those that the system trusts, in the file or folder where it keeps them; `None` if it has neither at a usual place.
    System(Option<&'static str>),
    /// Those in a file and in folders, and who named them.
    Named {
        file: Option<PathBuf>,
        folders: Option<PathBuf>,
        by: String,
    },
}

impl Trust {
    /// What the settings say.
    ///
    /// # Errors
    /// `Config` for a setting that cannot be used.
    pub(crate) fn of(config: &Config) -> Result<Trust> {
        let (file, folders) = (config.ca_bundle()?, config.ca_directory()?);
        let by = match (&file, &folders) {
            (None, None) => return Ok(Trust::of_system()),
            (Some(_), None) => spoken(&config.origin(Key::CaBundle)),
            (None, Some(_)) => spoken(&config.origin(Key::CaDirectory)),
            (Some(_), Some(_)) => format!(
                "{} and {}",
                spoken(&config.origin(Key::CaBundle)),
                spoken(&config.origin(Key::CaDirectory))
            ),
        };
        Ok(Trust::Named { file, folders, by })
    }

    // Not by what finds them for other programs, which looks into the environment: what that says the settings have heard.
    fn of_system() -> Trust {
        let places = SYSTEM_FILES.iter().chain(SYSTEM_FOLDERS);
        let found = places.copied().find(|place| Path::new(place).exists());
        Trust::System(found)
    }

    /// Those in this file, by the caller's argument.
    pub(crate) fn in_file(path: &Path) -> Trust {
        Trust::Named {
            file: Some(path.to_owned()),
            folders: None,
            by: "the caller".to_owned(),
        }
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, folders, by) = match self {
            Trust::Named { file, folders, by } => (file, folders, by),
            Trust::System(Some(place)) => return write!(f, "the system's in {place}"),
            Trust::System(None) => {
                return f.write_str("the system's, which has none at a usual place");
            }
        };
        f.write_str("those in")?;
        let mut word = " ";
        for path in [file, folders].into_iter().flatten() {
            write!(f, "{word}{}", path.display())?;
            word = " and ";
        }
        write!(f, " (from {by})")
    }
}

/// The setup of connections to servers that prove themselves by `trust`.
///
/// # Errors
/// `Untrusted` if the certificates cannot be read, or there are none.
pub(crate) fn config(trust: &Trust) -> Result<ClientConfig, Failure> {
    let found = match trust {
        Trust::System(None) => CertificateResult::default(),
        Trust::System(Some(place)) if SYSTEM_FOLDERS.contains(place) => {
            load(None, Some(Path::new(place)))
        }
        Trust::System(Some(place)) => load(Some(Path::new(place)), None),
        Trust::Named { file, folders, .. } => load(file.as_deref(), folders.as_deref()),
    };
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(found.certs);
    if added == 0 {
        let first = found.errors.first().map(|error| format!(": {error}"));
        let why = format!(
            "no certificate to trust was found in {trust}{}",
            first.unwrap_or_default()
        );
        return Err(Failure::lasting(ErrorKind::Untrusted, why));
    }
    for error in found.errors {
        tracing::warn!(%error, %trust, "a certificate was passed over");
    }
    with_roots(store).map_err(|error| Failure::lasting(ErrorKind::Internal, error.to_string()))
}

/// The setup of a client that makes no connection by TLS.
///
/// # Errors
/// `Internal` if there is none.
pub(crate) fn trusting_nobody() -> Result<ClientConfig> {
    with_roots(RootCertStore::empty())
}

/// Whether it is the certificate that is wrong, which no repetition helps.
pub(crate) fn is_about_trust(error: &rustls::Error) -> bool {
    matches!(
        error,
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented
    )
}

/// Which check failed, in a few words.
pub(crate) fn check_that_failed(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(reason) = error else {
        return error.to_string();
    };
    match reason {
        CertificateError::UnknownIssuer => "nobody trusted has signed it".to_owned(),
        CertificateError::BadSignature => {
            "whoever is trusted by the name of its signer has another key".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another name".to_owned()
        }
        other => other.to_string(),
    }
}

fn load(file: Option<&Path>, folders: Option<&Path>) -> CertificateResult {
    let mut found = rustls_native_certs::load_certs_from_paths(file, None);
    for folder in folders.iter().flat_map(std::env::split_paths) {
        let more = rustls_native_certs::load_certs_from_paths(None, Some(&folder));
        found.certs.extend(more.certs);
        found.errors.extend(more.errors);
    }
    found
}

fn with_roots(store: RootCertStore) -> Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| {
            let why = "TLS cannot be set up";
            Error::new(ErrorKind::Internal, Op::Open, why).because(cause)
        })?;
    let mut config = config.with_root_certificates(store).with_no_client_auth();
    config.resumption = sessions::sessions();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Who said a setting: of the environment the variable.
pub(crate) fn spoken(origin: &Origin) -> String {
    match origin {
        Origin::Environment(variable) => (*variable).to_owned(),
        other => other.to_string(),
    }
}

// Where distributions keep what they trust, in one file: Debian, Fedora and its kin, openSUSE, OpenELEC, Alpine.
const SYSTEM_FILES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/ssl/cert.pem",
];
// And in a file each, where there is no such file.
const SYSTEM_FOLDERS: &[&str] = &["/etc/ssl/certs", "/etc/pki/tls/certs"];
