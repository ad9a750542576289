//! What is told of certificates, and of TLS where there is none.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;

use kvik::{ErrorKind, Stage};
use kvik_tests::hostile::{Asked, Reply, Script, Server, Step as Play, Stream};
use kvik_tests::tls::{self, Authority, Certificate};

use super::{fact, fails, object, quick};

#[test]
fn a_server_that_proves_itself_is_told_with_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let file = authority.file(folder.path());
    let server = authority.serve(Certificate::Right, |asked| {
        Reply::of(&object(), asked).script()
    });
    let diagnosis = quick().ca_bundle(&file).diagnose(&tls::url(&server, "a"));
    assert_eq!(diagnosis.failure(), None, "{diagnosis:#?}");
    assert_eq!(fact(&diagnosis, Stage::Tls, "version"), "TLS 1.3");
    assert_eq!(fact(&diagnosis, Stage::Tls, "names"), "127.0.0.1");
    assert_eq!(
        fact(&diagnosis, Stage::Tls, "subject"),
        "CN=rcgen self signed cert"
    );
    let trusted = format!("those in {} (from the caller)", file.display());
    assert_eq!(fact(&diagnosis, Stage::Tls, "trusted"), trusted);
}

#[test]
fn a_certificate_that_is_refused_is_told_with_the_check_and_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let (authority, other) = (Authority::new(), Authority::new());
    let play = |asked: &Asked| Reply::of(b"bytes", asked).script();
    let trusting = |by: &Authority| quick().ca_bundle(by.file(folder.path()));
    for (trusted, certificate, what, advice) in [
        (
            None,
            Certificate::Right,
            "nobody trusted has signed it",
            "KVIK_CA_BUNDLE",
        ),
        (
            Some(&other),
            Certificate::Right,
            "its signer has another key",
            "are named now",
        ),
        (
            Some(&authority),
            Certificate::Expired,
            "it has expired",
            "operator has to renew it",
        ),
        (
            Some(&authority),
            Certificate::Misnamed,
            "it is for another name",
            "is for: elsewhere.example",
        ),
    ] {
        let server = authority.serve(certificate, play);
        let options = trusted.map_or_else(quick, trusting);
        let diagnosis = options.diagnose(&tls::url(&server, "a"));
        fails(&diagnosis, Stage::Tls, ErrorKind::Untrusted, what, advice);
        assert_eq!(
            fact(&diagnosis, Stage::Tls, "issuer"),
            "CN=rcgen self signed cert"
        );
        if certificate == Certificate::Expired {
            let until = fact(&diagnosis, Stage::Tls, "valid_until");
            assert_eq!(until, "Tue, 01 Jan 2002 00:00:00 GMT");
        }
        assert_eq!(
            server.asked().len(),
            0,
            "nothing is asked of a server that is not trusted"
        );
    }
    let nothing = folder.path().join("none.pem");
    std::fs::write(&nothing, "no certificate").unwrap();
    let server = authority.serve(Certificate::Right, play);
    let diagnosis = quick()
        .ca_bundle(&nothing)
        .diagnose(&tls::url(&server, "a"));
    fails(
        &diagnosis,
        Stage::Tls,
        ErrorKind::Untrusted,
        "no certificate to trust",
        "in PEM",
    );
}

#[test]
fn tls_and_plain_http_that_were_mixed_up_are_told() {
    let answers = |mut socket: TcpStream| {
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")?;
        Ok(Box::new(socket) as Box<dyn Stream>)
    };
    let plain = Server::start_wrapped(|_| Script(vec![Play::Close]), Arc::new(answers));
    let diagnosis = quick().diagnose(&tls::url(&plain, "a"));
    fails(
        &diagnosis,
        Stage::Tls,
        ErrorKind::Unreachable,
        "no TLS",
        "does not speak TLS at port",
    );

    let secure = Authority::new().serve(Certificate::Right, |_| Script(vec![Play::Close]));
    let diagnosis = quick().diagnose(&secure.url("a"));
    let (step, _) = diagnosis.failure().unwrap();
    assert_eq!(step.stage, Stage::Http, "{diagnosis:#?}");
    assert!(
        step.advice.as_deref().unwrap().contains("write https://"),
        "{step:?}"
    );
}
