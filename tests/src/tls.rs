//! Servers by TLS with certificates of their own, good and bad ones.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::hostile::{Asked, Script, Server, Stream};

/// Somebody who signs certificates.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// What a certificate says of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// The truth.
    Right,
    /// That it was over years ago.
    Expired,
    /// Another name.
    Misnamed,
}

impl Authority {
    /// Somebody new, whom nobody trusts yet.
    #[must_use]
    pub fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own = params.self_signed(&key).unwrap();
        Authority {
            pem: own.pem(),
            issuer: Issuer::new(params, key),
        }
    }

    /// A file with what has to be trusted.
    #[must_use]
    pub fn file(&self, folder: &Path) -> PathBuf {
        let path = folder.join("ca.pem");
        std::fs::write(&path, &self.pem).unwrap();
        path
    }

    /// A server with a certificate signed by this one.
    pub fn serve(
        &self,
        certificate: Certificate,
        play: impl Fn(&Asked) -> Script + Send + Sync + 'static,
    ) -> Server {
        let name = match certificate {
            Certificate::Misnamed => "elsewhere.example",
            _ => "127.0.0.1",
        };
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        if certificate == Certificate::Expired {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        }
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![signed.der().clone()],
                PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            )
            .unwrap();
        let config = Arc::new(config);
        let wrap = move |socket: TcpStream| {
            let connection = ServerConnection::new(Arc::clone(&config));
            let connection = connection.map_err(std::io::Error::other)?;
            Ok(Box::new(StreamOwned::new(connection, socket)) as Box<dyn Stream>)
        };
        Server::start_wrapped(play, Arc::new(wrap))
    }
}

impl Default for Authority {
    fn default() -> Authority {
        Authority::new()
    }
}

/// The URL of an object of a server by TLS.
#[must_use]
pub fn url(server: &Server, path: &str) -> String {
    format!("https://{}/{path}", server.address())
}
