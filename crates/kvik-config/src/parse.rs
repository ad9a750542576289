//! From text to value and back, for every type a setting can have. Pure; the whole text counts, blanks at its ends apart.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use crate::proxy::ProxyUrl;
use crate::value::{CompatMode, DirectIo, LogLevel, RemoteIoBackend, RemoteReactorDispatch};
use crate::{ByteSize, size};

/// What a key allows beyond what its type does.
pub(crate) struct Rule {
    least: u64,
    most: u64,
    auto: Option<fn() -> u64>,
    empty: Option<fn() -> &'static str>,
}

impl Rule {
    pub(crate) const fn any() -> Rule {
        Rule::at_least(0)
    }

    pub(crate) const fn at_least(least: u64) -> Rule {
        Rule::between(least, u64::MAX)
    }

    pub(crate) const fn between(least: u64, most: u64) -> Rule {
        Rule {
            least,
            most,
            auto: None,
            empty: None,
        }
    }

    /// The word `auto` is a value too, and means the number that `auto` computes.
    pub(crate) const fn or_auto(self, auto: fn() -> u64) -> Rule {
        Rule {
            auto: Some(auto),
            ..self
        }
    }

    /// The empty text is a value too, and means the text that `empty` returns.
    pub(crate) const fn or_empty(self, empty: fn() -> &'static str) -> Rule {
        Rule {
            empty: Some(empty),
            ..self
        }
    }

    fn number(&self, text: &str) -> Option<u64> {
        let number = match (text.trim(), self.auto) {
            (word, Some(auto)) if word.eq_ignore_ascii_case("auto") => auto(),
            (number, _) => number.parse().ok()?,
        };
        self.allows(number).then_some(number)
    }

    fn allows(&self, number: u64) -> bool {
        (self.least..=self.most).contains(&number)
    }

    fn range(&self) -> String {
        match (self.least, self.most) {
            (0, u64::MAX) => String::new(),
            (least, u64::MAX) => format!(" of at least {least}"),
            (least, most) => format!(" from {least} to {most}"),
        }
    }
}

/// A type that a setting can have. `parse` undoes `text`.
pub(crate) trait Setting: Clone {
    /// Whether every text is a value.
    const IS_TEXT: bool = false;

    fn parse(text: &OsStr, rule: &Rule) -> Option<Self>;
    /// What `parse` accepts, so that "is not {}" makes a sentence.
    fn expected(rule: &Rule) -> String;
    fn text(&self) -> OsString;
    /// What may be shown of a text, be it a value or not.
    fn shown(text: &OsStr) -> String {
        text.to_string_lossy().into_owned()
    }
}

impl Setting for usize {
    fn parse(text: &OsStr, rule: &Rule) -> Option<usize> {
        usize::try_from(rule.number(text.to_str()?)?).ok()
    }

    fn expected(rule: &Rule) -> String {
        let auto = if rule.auto.is_some() {
            " or `auto`"
        } else {
            ""
        };
        format!("a whole number{}{auto}", rule.range())
    }

    fn text(&self) -> OsString {
        self.to_string().into()
    }
}

impl Setting for ByteSize {
    fn parse(text: &OsStr, rule: &Rule) -> Option<ByteSize> {
        let size: ByteSize = text.to_str()?.parse().ok()?;
        rule.allows(size.bytes()).then_some(size)
    }

    fn expected(rule: &Rule) -> String {
        // Byte, not bytes: no setting asks for a larger least size.
        let least = match rule.least {
            0 => String::new(),
            least => format!(" of at least {least} byte"),
        };
        format!("a size{least}, {}", size::SPELLINGS)
    }

    fn text(&self) -> OsString {
        self.to_string().into()
    }
}

/// KvikIO's words, and whole numbers, of which all but 0 mean yes.
impl Setting for bool {
    fn parse(text: &OsStr, _: &Rule) -> Option<bool> {
        match text.to_str()?.trim().to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" => Some(true),
            "false" | "off" | "no" => Some(false),
            number => number.parse::<i64>().ok().map(|number| number != 0),
        }
    }

    fn expected(_: &Rule) -> String {
        "one of `on` `true` `yes` `1` `off` `false` `no` `0`".to_owned()
    }

    fn text(&self) -> OsString {
        if *self { "on" } else { "off" }.into()
    }
}

/// Seconds, with up to nine decimals.
impl Setting for Duration {
    fn parse(text: &OsStr, rule: &Rule) -> Option<Duration> {
        let text = text.to_str()?.trim();
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        if decimals.is_empty()
            || decimals.len() > 9
            || !decimals.bytes().all(|b| b.is_ascii_digit())
        {
            return None;
        }
        let nanos: u32 = format!("{decimals:0<9}").parse().ok()?;
        let duration = Duration::new(whole.parse().ok()?, nanos);
        // The limits of a time are there to refuse zero.
        (rule.least == 0 || !duration.is_zero()).then_some(duration)
    }

    fn expected(_: &Rule) -> String {
        "a number of seconds above 0, such as 60 or 0.5".to_owned()
    }

    fn text(&self) -> OsString {
        let text = format!("{}.{:09}", self.as_secs(), self.subsec_nanos());
        text.trim_end_matches('0').trim_end_matches('.').into()
    }
}

/// Numbers between commas, in brackets or not. `[]` is the empty list.
impl Setting for Vec<u16> {
    fn parse(text: &OsStr, rule: &Rule) -> Option<Vec<u16>> {
        let text = match (text.to_str()?.trim(), rule.empty) {
            ("", Some(empty)) => empty(),
            (text, _) => text,
        };
        let list = match text.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']')?,
            None => text,
        };
        if text.starts_with('[') && list.trim().is_empty() {
            return Some(Vec::new());
        }
        list.split(',')
            .map(|code| u16::try_from(rule.number(code)?).ok())
            .collect()
    }

    fn expected(rule: &Rule) -> String {
        format!(
            "a list of whole numbers{} with commas between them, or `[]`",
            rule.range()
        )
    }

    fn text(&self) -> OsString {
        if self.is_empty() {
            return "[]".into();
        }
        let codes: Vec<_> = self.iter().map(u16::to_string).collect();
        codes.join(", ").into()
    }
}

/// Any text as it is; the empty one is none.
impl Setting for Option<String> {
    const IS_TEXT: bool = true;

    fn parse(text: &OsStr, _: &Rule) -> Option<Option<String>> {
        let text = text.to_str()?;
        Some((!text.is_empty()).then(|| text.to_owned()))
    }

    fn expected(_: &Rule) -> String {
        "a text in UTF-8".to_owned()
    }

    fn text(&self) -> OsString {
        self.clone().unwrap_or_default().into()
    }
}

/// Any text, of which not all is shown; the empty one is none.
impl Setting for Option<ProxyUrl> {
    const IS_TEXT: bool = true;

    fn parse(text: &OsStr, _: &Rule) -> Option<Option<ProxyUrl>> {
        let text = text.to_str()?.trim();
        Some((!text.is_empty()).then(|| ProxyUrl::new(text)))
    }

    fn expected(_: &Rule) -> String {
        "a URL in UTF-8".to_owned()
    }

    fn text(&self) -> OsString {
        let url = self.as_ref().map(ProxyUrl::as_str);
        url.unwrap_or_default().into()
    }

    fn shown(text: &OsStr) -> String {
        ProxyUrl::new(text.to_string_lossy()).to_string()
    }
}

/// Any path as it is; the empty one is none.
impl Setting for Option<PathBuf> {
    const IS_TEXT: bool = true;

    fn parse(text: &OsStr, _: &Rule) -> Option<Option<PathBuf>> {
        Some((!text.is_empty()).then(|| PathBuf::from(text)))
    }

    fn expected(_: &Rule) -> String {
        "a path".to_owned()
    }

    fn text(&self) -> OsString {
        self.clone().unwrap_or_default().into()
    }
}

macro_rules! words_are_settings {
    ($($kind:ty),*) => {$(
        impl Setting for $kind {
            fn parse(text: &OsStr, _: &Rule) -> Option<$kind> {
                text.to_str()?.parse().ok()
            }

            fn expected(_: &Rule) -> String {
                <$kind>::EXPECTED.to_owned()
            }

            fn text(&self) -> OsString {
                self.word().into()
            }
        }
    )*};
}
words_are_settings!(
    CompatMode,
    DirectIo,
    RemoteIoBackend,
    RemoteReactorDispatch,
    LogLevel
);
