//! Who asks: the header `Authorization`, by a token or by a name and a password.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use kvik_core::Result;

use super::refused;
use crate::location::UserInfo;

/// The value for a bearer token.
///
/// # Errors
/// `Misuse` for what is no token.
pub(crate) fn bearer(token: &str) -> Result<HeaderValue> {
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(refused(
            "the bearer token is empty, or has characters that no token has",
        ));
    }
    secret(&format!("Bearer {token}"))
}

/// The value for a name and a password.
///
/// # Errors
/// `Misuse` for a name with a colon.
pub(crate) fn basic(user: &UserInfo) -> Result<HeaderValue> {
    if user.user.contains(':') {
        return Err(refused(
            "the user name has a colon, which this kind of login cannot have",
        ));
    }
    secret(&format!("Basic {}", pair(user)))
}

/// Name and password, as the header has them.
pub(crate) fn pair(user: &UserInfo) -> String {
    BASE64_STANDARD.encode(format!("{}:{}", user.user, user.password))
}

/// Says who asks: by the token of the moment, else by what the caller's headers say, else by the user of the URL.
pub(super) fn authorize(
    headers: &mut HeaderMap,
    token: Option<&str>,
    user: Option<&UserInfo>,
) -> Result<()> {
    let value = match (token, user) {
        (Some(token), _) => bearer(token)?,
        (None, Some(user)) if !headers.contains_key(AUTHORIZATION) => basic(user)?,
        _ => return Ok(()),
    };
    headers.insert(AUTHORIZATION, value);
    Ok(())
}

fn secret(text: &str) -> Result<HeaderValue> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| refused("user and password are none that a header can hold"))?;
    value.set_sensitive(true);
    Ok(value)
}
