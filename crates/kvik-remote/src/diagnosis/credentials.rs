//! The step `credentials`: whose requests they are, by whose word, and where they go. What is secret of it stays here.

use std::time::SystemTime;

use super::{Seen, Stage, Step, Way, calendar};
use crate::credentials::{Keys, Said};
use crate::endpoint::Addressing;
use crate::location::{Found, Kind};
use crate::origin::Asker;
use crate::redact;
use crate::store::Store;

/// Looks for keys, as opening does.
pub(super) async fn examine(way: &Way) -> Seen<()> {
    match &way.origin.asker {
        Asker::Store(store) => of_store(way, store).await,
        _ => Ok((of_plain(way), ())),
    }
}

async fn of_store(way: &Way, store: &Store) -> Seen<()> {
    let prepared = store.prepare().await;
    prepared.map_err(|error| Step::of_error(Stage::Credentials, &error))?;
    let keys = store.keys();
    let address = store.address();
    let mut step = Step::ok(Stage::Credentials, store.who());
    if let Some(end) = keys.as_deref().and_then(Keys::expiry)
        && end <= SystemTime::now()
    {
        let what = format!("the keys ended on {}", calendar::shown(end));
        let advice = format!("get new ones from {}", store.who());
        step = Step::note(Stage::Credentials, what, advice);
    }
    if let Some(keys) = &keys {
        let begin: String = keys.id().chars().take(4).collect();
        step = step
            .fact("keys_from", keys.origin())
            .fact("key_id", format!("{}...", redact::foreign(&begin, &[], 8)))
            .fact("session_token", yes_or_no(keys.session_token().is_some()))
            .maybe("keys_valid_until", keys.expiry().map(calendar::shown));
    }
    let addressed = match store.addressing() {
        Addressing::VirtualHost => "in the host",
        Addressing::Path | Addressing::Auto => "in the path",
    };
    let step = step
        .fact("region", with_origin(store.region_in_use(), &way.region))
        .maybe(
            "endpoint",
            way.endpoint
                .as_ref()
                .map(|said| format!("from {}", said.origin)),
        )
        .fact("address", address)
        .fact("bucket_stands", addressed);
    Ok((step, ()))
}

/// The value, and who said it if that was what was said.
fn with_origin(value: String, said: &Option<Said>) -> String {
    match said {
        Some(said) if said.value == value => format!("{value} (from {})", said.origin),
        _ => value,
    }
}

fn of_plain(way: &Way) -> Step {
    let what = match (way.location.kind(), way.location.found()) {
        (Kind::S3Presigned, _) => "the URL has its signature in it; nothing else says who asks",
        (Kind::WebHdfs, _) => {
            "the user of the URL or of the settings, or a token, says who asks, where there is one"
        }
        _ if way.authorized => "a token or the header `Authorization` of the caller says who asks",
        (_, Found::Web(url)) if url.user_info().is_some() => {
            "the user name and the password of the URL say who asks"
        }
        _ => "nothing says who asks: no user in the URL, no token, no keys",
    };
    Step::ok(Stage::Credentials, what)
}

fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}
