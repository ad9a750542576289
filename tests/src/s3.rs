//! What a server of S3 makes of a request: whose it is, by a signature that is computed anew from what arrived, and how it
//! refuses. For servers of [`hostile`](crate::hostile).

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::hostile::{Asked, Reply};
use crate::percent::{decoded, encoded};

/// Whom a server knows, and the region that it is in.
#[derive(Clone, Debug)]
pub struct Account {
    /// The id of the key.
    pub id: String,
    /// The key.
    pub secret: String,
    /// The session token that belongs to it.
    pub token: Option<String>,
    /// Requests must be signed for this region.
    pub region: String,
}

impl Account {
    /// One without a session token, in `eu-west-1`.
    #[must_use]
    pub fn new(id: &str, secret: &str) -> Account {
        Account {
            id: id.to_owned(),
            secret: secret.to_owned(),
            token: None,
            region: "eu-west-1".to_owned(),
        }
    }

    /// The same with a token.
    #[must_use]
    pub fn token(self, token: &str) -> Account {
        let token = Some(token.to_owned());
        Account { token, ..self }
    }

    /// Whether the request is this account's.
    ///
    /// # Errors
    /// The refusal.
    pub fn check(&self, asked: &Asked) -> Result<(), Reply> {
        let Some(authorization) = asked.header("authorization") else {
            return Err(refusal(403, "AccessDenied", ""));
        };
        let value = |name: &str| {
            let (_, rest) = authorization.split_once(name).unwrap();
            rest.split(',').next().unwrap().trim()
        };
        let credential = value("Credential=");
        let (id, scope) = credential.split_once('/').unwrap();
        if id != self.id {
            return Err(refusal(403, "InvalidAccessKeyId", ""));
        }
        if asked.header("x-amz-security-token") != self.token.as_deref() {
            return Err(refusal(403, "InvalidToken", ""));
        }
        if scope.split('/').nth(1) != Some(&self.region) {
            let region = format!("<Region>{}</Region>", self.region);
            return Err(refusal(400, "AuthorizationHeaderMalformed", &region));
        }
        match value("Signature=") == self.signature(asked, scope, value("SignedHeaders=")) {
            true => Ok(()),
            false => Err(refusal(403, "SignatureDoesNotMatch", "")),
        }
    }

    fn signature(&self, asked: &Asked, scope: &str, names: &str) -> String {
        let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
        let parts = query.split('&').filter(|part| !part.is_empty());
        let mut parameters: Vec<String> = parts
            .map(|part| part.split_once('=').unwrap_or((part, "")))
            .map(|(name, value)| format!("{}={}", again(name, b""), again(value, b"")))
            .collect();
        parameters.sort();
        let mut canonical = format!("GET\n{}\n{}\n", again(path, b"/"), parameters.join("&"));
        for name in names.split(';') {
            canonical += &format!("{name}:{}\n", asked.header(name).unwrap_or_default());
        }
        let sealed = asked.header("x-amz-content-sha256").unwrap_or_default();
        canonical += &format!("\n{names}\n{sealed}");
        let to_sign = format!(
            "AWS4-HMAC-SHA256\n{}\n{scope}\n{}",
            asked.header("x-amz-date").unwrap_or_default(),
            hex(&Sha256::digest(&canonical))
        );
        let first = format!("AWS4{}", self.secret).into_bytes();
        let key = scope.split('/').fold(first, |key, part| mac(&key, part));
        hex(&mac(&key, &to_sign))
    }
}

/// A refusal as AWS writes it, with more elements.
#[must_use]
pub fn refusal(status: u16, code: &str, more: &str) -> Reply {
    let body = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>No, says the server</Message>{more}\
         <RequestId>REQ7</RequestId></Error>"
    );
    Reply::with(status, body.as_bytes()).header("content-type", "application/xml")
}

/// The same encoded once, but for letters, digits, `-._~` and what is `kept`.
fn again(text: &str, kept: &[u8]) -> String {
    encoded(&decoded(text), kept)
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
