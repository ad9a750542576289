//! The step `tls`: whether the server proves itself, and by what certificate. It is trusted by the client's own rules; one
//! that is refused is looked at by a second connection, which ends there.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use kvik_core::ErrorKind;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, ProtocolVersion, SignatureScheme};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::certificate::Certificate;
use super::link::Server;
use super::{Seen, Stage, Step, advice, calendar, millis};
use crate::tls::{self, Trust};

/// Shakes hands with the server at `address`.
pub(super) async fn examine(
    server: &Server,
    address: SocketAddr,
    trust: &Trust,
    limit: Duration,
) -> Seen<()> {
    let fail = |kind, what: String, advice: String| {
        Step::failed(Stage::Tls, kind, what, advice).fact("trusted", trust.to_string())
    };
    let config = tls::config(trust);
    let config =
        config.map_err(|failure| fail(failure.kind, failure.why, advice::of_trust(trust)))?;
    let begun = Instant::now();
    let shaken = tokio::time::timeout(limit, shake(config, server, address)).await;
    let took = millis(begun.elapsed());
    let error = match shaken {
        Ok(Ok(shaken)) => {
            let step = of_certificate(shaken.certificate.as_ref())
                .fact("version", shaken.version)
                .fact("trusted", trust.to_string())
                .fact("took", took);
            return Ok((described(step, shaken.certificate.as_ref()), ()));
        }
        Ok(Err(error)) => error,
        Err(_) => {
            let seconds = limit.as_secs_f64();
            let what = format!("the handshake was not done within {seconds} s");
            return Err(fail(
                ErrorKind::TimedOut,
                what,
                advice::OF_SILENCE.to_owned(),
            ));
        }
    };
    let reason = reason(&error);
    let Some(reason) = reason.filter(|reason| tls::is_about_trust(reason)) else {
        let why = reason.map_or_else(|| error.to_string(), ToString::to_string);
        let what = format!("no TLS with the server: {why}");
        let advice = advice::of_handshake(server, reason);
        return Err(fail(ErrorKind::Unreachable, what, advice));
    };
    let seen = tokio::time::timeout(limit, look(server, address)).await;
    let seen = seen.ok().flatten();
    let what = format!(
        "the server's certificate is refused: {}",
        tls::check_that_failed(reason)
    );
    let advice = advice::of_certificate(server, reason, trust, seen.as_ref());
    let step = fail(ErrorKind::Untrusted, what, advice);
    Err(described(step, seen.as_ref()))
}

struct Shaken {
    version: &'static str,
    certificate: Option<Certificate>,
}

async fn shake(config: ClientConfig, server: &Server, address: SocketAddr) -> io::Result<Shaken> {
    let name = ServerName::try_from(server.host.clone()).map_err(io::Error::other)?;
    // A connection of its own: the step before may have let the one it made rest for longer than a server waits.
    let stream = TcpStream::connect(address).await?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await?;
    let (_, connection) = stream.get_ref();
    let shown = connection.peer_certificates().and_then(<[_]>::first);
    Ok(Shaken {
        version: match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
            Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
            _ => "another version",
        },
        certificate: shown.and_then(|shown| Certificate::read(shown)),
    })
}

/// The certificate of a server that is not to be trusted.
async fn look(server: &Server, address: SocketAddr) -> Option<Certificate> {
    let looker = Arc::new(Looker::default());
    let config = config_to_look(Arc::clone(&looker))?;
    // It fails: nothing that is looked at is accepted.
    let _ = shake(config, server, address).await;
    let shown = looker
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()?;
    Certificate::read(&shown)
}

fn config_to_look(looker: Arc<Looker>) -> Option<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().ok()?;
    let config = config.dangerous().with_custom_certificate_verifier(looker);
    Some(config.with_no_client_auth())
}

/// Keeps the certificate of the server, and refuses it.
#[derive(Debug, Default)]
struct Looker(Mutex<Option<Vec<u8>>>);

impl ServerCertVerifier for Looker {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(shown.to_vec());
        Err(only_looked_at())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(only_looked_at())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(only_looked_at())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let provider = rustls::crypto::ring::default_provider();
        provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

fn only_looked_at() -> rustls::Error {
    rustls::Error::General("the certificate was only to be looked at".to_owned())
}

/// The step of a certificate that is good.
fn of_certificate(certificate: Option<&Certificate>) -> Step {
    let soon = SystemTime::now() + SOON;
    match certificate.and_then(|certificate| certificate.ends) {
        Some(end) if end < soon => Step::note(
            Stage::Tls,
            format!("the server proves itself, until {}", calendar::shown(end)),
            "its operator has to renew the certificate before that",
        ),
        _ => Step::ok(Stage::Tls, "the server proves itself"),
    }
}

fn described(step: Step, certificate: Option<&Certificate>) -> Step {
    let Some(certificate) = certificate else {
        return step;
    };
    let names = (!certificate.names.is_empty()).then(|| certificate.named());
    step.fact("subject", certificate.subject.clone())
        .maybe("names", names)
        .fact("issuer", certificate.issuer.clone())
        .maybe("valid_from", certificate.begins.map(calendar::shown))
        .maybe("valid_until", certificate.ends.map(calendar::shown))
}

fn reason(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

const SOON: Duration = Duration::from_secs(14 * 24 * 3600);
