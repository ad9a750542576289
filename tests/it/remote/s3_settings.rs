//! S3: lance-format/lance#806, kvikio#811, kvikio#687: only variables are looked at, or a region that was given is lost on one
//! way.

use std::fs;

use kvik_tests::child::Child;
use kvik_tests::hostile::{Reply, Server};
use kvik_tests::s3::Account;

use crate::child;

fn serve(account: Account) -> Server {
    Server::start(move |asked| match account.check(asked) {
        Ok(()) => Reply::of(b"bytes", asked).script(),
        Err(refusal) => refusal.script(),
    })
}

fn facts(endpoint: &str) -> Child {
    child("remote-facts")
        .arg("s3://b/k")
        .env("AWS_ENDPOINT_URL", endpoint)
}

#[test]
fn s3_keys_region_and_endpoint_come_from_the_variables() {
    let server = serve(Account::new("AKONE", "secret1").token("t0ken"));
    let keyed = || {
        facts(&server.url(""))
            .env("AWS_ACCESS_KEY_ID", "AKONE")
            .env("AWS_SECRET_ACCESS_KEY", "secret1")
            .env("AWS_SESSION_TOKEN", "t0ken")
    };
    let expected = "S3, 5 bytes, the environment, eu-west-1\n";
    assert_eq!(keyed().env("AWS_REGION", "eu-west-1").succeeds(), expected);
    assert_eq!(
        keyed().env("AWS_DEFAULT_REGION", "eu-west-1").succeeds(),
        expected
    );
    assert_eq!(server.asked().len(), 2);
    // Without any the server says which.
    assert_eq!(keyed().succeeds(), expected);
    assert_eq!(server.asked().len(), 4);
    let special = keyed()
        .env("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        .env("AWS_ENDPOINT_URL_S3", server.url(""));
    assert_eq!(special.succeeds(), expected);
}

#[test]
fn s3_keys_region_and_endpoint_come_from_the_profile() {
    let server = serve(Account::new("AKTWO", "secret2"));
    let folder = tempfile::tempdir().unwrap();
    let (config, credentials) = (
        folder.path().join("config"),
        folder.path().join("credentials"),
    );
    let text = format!(
        "# ours\r\n[profile mine]\r\nregion = eu-west-1\r\nendpoint_url = {}\r\n",
        server.url("")
    );
    fs::write(&config, text).unwrap();
    fs::write(
        &credentials,
        "[mine]\naws_access_key_id=AKTWO\naws_secret_access_key = secret2 \n",
    )
    .unwrap();
    let run = |profile: &str| {
        child("remote-facts")
            .arg("s3://b/k")
            .env("AWS_CONFIG_FILE", &config)
            .env("AWS_SHARED_CREDENTIALS_FILE", &credentials)
            .env("AWS_PROFILE", profile)
    };
    assert_eq!(
        run("mine").succeeds(),
        "S3, 5 bytes, the profile `mine`, eu-west-1\n"
    );
    let said = run("yours").succeeds();
    assert!(said.starts_with("Config: "), "{said}");
    for path in [&config, &credentials] {
        assert!(said.contains(path.to_str().unwrap()), "{said}");
    }
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn s5_half_a_pair_of_keys_is_an_error_and_asks_nothing() {
    let server = Server::of(b"bytes".to_vec());
    let half = facts(&server.url("")).env("AWS_ACCESS_KEY_ID", "AKONE");
    let said = half.succeeds();
    assert!(said.starts_with("Config: "), "{said}");
    assert!(
        said.contains("has AWS_ACCESS_KEY_ID and no AWS_SECRET_ACCESS_KEY"),
        "{said}"
    );
    assert_eq!(server.asked().len(), 0);
    // No keys at all are no error.
    let said = facts(&server.url("")).succeeds();
    assert_eq!(said, "S3 public, 5 bytes, no keys, us-east-1\n");
}
