//! Failure: why a command stopped, as a person reads it and as a program does.

use std::error::Error as _;
use std::io;
use std::path::Path;

use kvik::{Error, ErrorKind, Op, Place};
use serde_json::{Map, Value, json};

use crate::Exit;

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// What stopped a command: the exit code, the text, a hint, and facts for `--json`.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    kind: String,
    message: String,
    hint: Option<String>,
    facts: Map<String, Value>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, kind: &str, message: impl Into<String>) -> Self {
        Failure {
            exit,
            kind: kind.to_owned(),
            message: message.into(),
            hint: None,
            facts: Map::new(),
        }
    }

    /// The call contradicts itself; nothing was touched.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::new(Exit::Usage, "Misuse", message)
    }

    /// A failed call of the standard library. `what` is the verb that stands before the path, as in `rename`.
    pub(crate) fn io(what: &str, path: &Path, error: &io::Error) -> Self {
        Failure::at(what, &show(path), error).fact("place", path.to_string_lossy())
    }

    /// The same where there is no path, as for standard output.
    pub(crate) fn at(what: &str, place: &str, error: &io::Error) -> Self {
        let (kind, why) = explain(error);
        Failure::new(
            kind.into(),
            &format!("{kind:?}"),
            format!("{what} {place}: {why}"),
        )
        .fact("os_error", error.raw_os_error())
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub(crate) fn fact(mut self, name: &str, value: impl serde::Serialize) -> Self {
        // Only strings and numbers come here, which always serialize.
        self.facts.insert(name.to_owned(), json!(value));
        self
    }

    /// The same failure in other words.
    #[must_use]
    pub(crate) fn reworded(mut self, message: String) -> Self {
        self.message = message;
        self
    }

    /// The same with a next step, where a file that does not exist has a name that looks like a URL.
    #[must_use]
    pub(crate) fn mindful_of_urls(mut self) -> Self {
        // No server speaks of error numbers of this system.
        let missing = self.facts.get("os_error") == Some(&json!(libc::ENOENT));
        if missing && self.hint.is_none() && names_url(&self.message) {
            self.hint = Some(URLS.to_owned());
        }
        self
    }

    /// Whether it is of this kind of kvik's.
    pub(crate) fn is(&self, kind: ErrorKind) -> bool {
        self.kind == format!("{kind:?}")
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The member `error` of the JSON object.
    pub(crate) fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("kind".into(), json!(self.kind));
        object.insert("exit_code".into(), json!(self.exit.code()));
        object.insert("message".into(), json!(self.message));
        object.insert("hint".into(), json!(self.hint));
        object.extend(self.facts.clone());
        Value::Object(object)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let kind = error.kind();
        // The text of a setting's error begins with the setting; kvik's own word before it would say so twice.
        let message = match error.source() {
            Some(cause) if kind == ErrorKind::Config => cause.to_string(),
            _ => error.to_string(),
        };
        let mut failure = Failure::new(kind.into(), &format!("{kind:?}"), message);
        failure.hint = hint_for(kind).map(str::to_owned);
        // What is wrong with a setting is wrong whatever was opened first.
        if let Some(place) = error.place().filter(|_| kind != ErrorKind::Config) {
            failure = failure.fact("place", place.to_string());
        }
        if let Some(range) = error.range() {
            failure = failure
                .fact("offset", range.start)
                .fact("length", range.end - range.start);
        }
        failure
            .fact("done", error.done())
            .fact("os_error", error.os_error())
    }
}

impl From<kvik::config::ConfigError> for Failure {
    fn from(error: kvik::config::ConfigError) -> Self {
        Error::from(error).into()
    }
}

/// Where the command knows a next step that the text of the error does not have.
fn hint_for(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::Config => {
            Some("`kvik config` lists every setting, its value and where that came from")
        }
        ErrorKind::GdsUnavailable => Some("`kvik doctor` says what is missing"),
        _ => None,
    }
}

const URLS: &str = "this was taken for the name of a file; `kvik copy`, `cat` and `stat` read URLs";

/// Whether a word of the text begins with a scheme and `://`.
fn names_url(text: &str) -> bool {
    text.split_whitespace().any(|word| {
        word.split_once("://").is_some_and(|(scheme, _)| {
            !scheme.is_empty() && scheme.chars().all(|letter| letter.is_ascii_alphanumeric())
        })
    })
}

/// Kind and words for a failed call that the command made by itself; kvik's own table decides, so that they agree.
fn explain(error: &io::Error) -> (ErrorKind, String) {
    let same = match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    };
    let known = Error::io(Op::Inspect, same);
    let text = known.to_string();
    let why = text.split_once(": ").map_or(text.as_str(), |(_, why)| why);
    (known.kind(), why.to_owned())
}

/// A path for a message, with control characters escaped.
pub(crate) fn show(path: &Path) -> String {
    Place::from(path).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_rename_says_where_and_why_and_keeps_the_number() {
        let error = io::Error::from_raw_os_error(28);
        let failure = Failure::io("rename", Path::new("b.kvik-part"), &error);
        assert_eq!(failure.exit(), Exit::NoSpace);
        assert_eq!(
            failure.message(),
            "rename b.kvik-part: No space left on device (ENOSPC); free space or raise the quota, then run it again"
        );
        assert_eq!(failure.to_json()["os_error"], 28);
        assert_eq!(failure.to_json()["exit_code"], 6);
    }

    #[test]
    fn a_missing_url_is_told_from_a_missing_file() {
        let error = io::Error::from_raw_os_error(2);
        let hint = |path: &str| {
            let failure = Failure::io("open", Path::new(path), &error).mindful_of_urls();
            failure.hint_text().map(str::to_owned)
        };
        assert_eq!(hint("s3://bucket/key").as_deref(), Some(URLS));
        assert_eq!(hint("https://host/data.bin").as_deref(), Some(URLS));
        assert_eq!(hint("./http:/data.bin"), None);
        assert_eq!(hint("://data.bin"), None);
        let text = "open https://host/data.bin: the server answered 404 Not Found";
        let served = Failure::new(Exit::NotFound, "NotFound", text);
        let served = served.fact("os_error", None::<i32>).mindful_of_urls();
        assert_eq!(served.hint_text(), None);
    }

    #[test]
    fn a_bad_setting_is_named_once() {
        let layer = kvik::Layer::new().set(kvik::config::Key::NumThreads, "none");
        let failure = Failure::from(kvik::Config::resolve([layer]).unwrap_err());
        assert!(
            failure.message().starts_with("setting num_threads: "),
            "{}",
            failure.message()
        );
        assert!(failure.is(ErrorKind::Config));
    }
}
