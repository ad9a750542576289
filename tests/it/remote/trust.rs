//! H6: servers by TLS, and whom to trust. Once the path of the certificates was that of the machine where it was built.

use kvik::stats::names::HTTP_RETRIES;
use kvik::{Config, ErrorKind, Layer, ReadAtExt};
use kvik_tests::hostile::{Asked, Reply, Script};
use kvik_tests::pattern::{assert_same, pattern};
use kvik_tests::remote::quick;
use kvik_tests::tls::{Authority, Certificate, url};

use crate::child;

fn play(asked: &Asked) -> Script {
    Reply::of(&pattern(1, 0, 100_000), asked).script()
}

#[test]
fn an_authority_is_trusted_by_argument_and_by_setting() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let file = authority.file(folder.path());
    let server = authority.serve(Certificate::Right, play);
    let by_file = Layer::new().ca_bundle(Some(file.clone()));
    let by_folder = Layer::new().ca_directory(Some(folder.path().to_owned()));
    let config = |layer| Config::resolve([layer]).unwrap();
    for options in [
        quick().ca_bundle(&file),
        quick().config(&config(by_file)),
        quick().config(&config(by_folder)),
    ] {
        let object = options.open(&url(&server, "a")).unwrap();
        assert_same(&object.read_to_end(0).unwrap(), &pattern(1, 0, 100_000));
    }
}

#[test]
fn an_authority_is_trusted_by_the_variables_that_other_programs_know() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let file = authority.file(folder.path());
    let server = authority.serve(Certificate::Right, play);
    for (variable, value) in [
        ("KVIK_CA_BUNDLE", file.as_path()),
        ("CURL_CA_BUNDLE", file.as_path()),
        ("SSL_CERT_FILE", file.as_path()),
        ("AWS_CA_BUNDLE", file.as_path()),
        ("SSL_CERT_DIR", folder.path()),
    ] {
        let read = child("remote-read").arg(url(&server, "a"));
        let said = read.env(variable, value).succeeds();
        assert!(said.contains("100000 bytes"), "{variable}: {said}");
    }
}

#[test]
fn variables_count_by_the_settings_alone() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let file = authority.file(folder.path());
    let server = authority.serve(Certificate::Right, play);
    let read = child("remote-by-default").arg(url(&server, "a"));
    let read = read.env("SSL_CERT_FILE", &file);
    let said = read.env("SSL_CERT_DIR", folder.path()).succeeds();
    assert!(said.contains("trusted are the system's"), "{said}");
}

#[test]
fn an_authority_is_trusted_for_s3_by_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let file = authority.file(folder.path());
    let server = authority.serve(Certificate::Right, play);
    let config = folder.path().join("config");
    let text = format!("[default]\nca_bundle = {}\n", file.display());
    std::fs::write(&config, text).unwrap();
    let read = child("remote-facts").arg("s3://b/k");
    let read = read.env("AWS_ENDPOINT_URL", url(&server, ""));
    let said = read.env("AWS_CONFIG_FILE", &config).succeeds();
    assert_eq!(said, "S3 public, 100000 bytes, no keys, us-east-1\n");
}

#[test]
fn a_server_that_does_not_prove_itself_is_refused_at_once_with_the_check_that_failed() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let file = authority.file(folder.path());
    let trusting = || quick().ca_bundle(&file);
    for (certificate, options, says) in [
        (
            Certificate::Right,
            quick(),
            "nobody trusted has signed it; trusted are ",
        ),
        (
            Certificate::Expired,
            trusting(),
            "it has expired; trusted are those in ",
        ),
        (
            Certificate::Misnamed,
            trusting(),
            "it is for another name; trusted are those in ",
        ),
    ] {
        let server = authority.serve(certificate, play);
        let before = HTTP_RETRIES.get();
        let error = options.open(&url(&server, "a")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Untrusted, "{error}");
        assert!(
            error.to_string().contains(says),
            "`{says}` is not in: {error}"
        );
        assert_eq!(HTTP_RETRIES.get(), before, "{error}");
        assert!(server.asked().is_empty());
    }
    let missing = quick().ca_bundle("/nowhere/ca.pem");
    let server = authority.serve(Certificate::Right, play);
    let error = missing.open(&url(&server, "a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Untrusted, "{error}");
    assert!(
        error
            .to_string()
            .contains("/nowhere/ca.pem (from the caller)"),
        "{error}"
    );
}

/// H4: what was to come by TLS does not come without it.
#[test]
fn a_redirect_from_https_to_http_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let file = authority.file(folder.path());
    let server = authority.serve(Certificate::Right, |asked| {
        let to = format!("http://{}/b", asked.header("host").unwrap());
        Reply::redirect(302, &to).script()
    });
    let error = quick()
        .ca_bundle(file)
        .open(&url(&server, "a"))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert_eq!(server.asked().len(), 1);
}
