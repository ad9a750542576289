//! TLS of the plain clients: whoever is certified by one authority, and nobody else.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// For connections to a server by this authority; none is trusted without.
pub(super) fn config(authority: Option<&Path>) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    if let Some(authority) = authority {
        for certificate in CertificateDer::pem_file_iter(authority).map_err(io::Error::other)? {
            let certificate = certificate.map_err(io::Error::other)?;
            roots.add(certificate).map_err(io::Error::other)?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
