//! A fact, or why there is none.

use std::fmt;

/// A fact that may be absent, and then says why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(untagged))]
pub enum Fact<T> {
    /// It is known.
    Known(T),
    /// It is not known or does not exist.
    Absent {
        /// The reason, a clause without a stop.
        absent: String,
    },
}

impl<T> Fact<T> {
    /// No fact, for the reason given.
    pub(crate) fn absent(why: impl Into<String>) -> Fact<T> {
        Fact::Absent { absent: why.into() }
    }

    pub(crate) fn from_result<E: fmt::Display>(result: Result<T, E>, call: &str) -> Fact<T> {
        match result {
            Ok(value) => Fact::Known(value),
            Err(error) => Fact::absent(format!("{call}: {error}")),
        }
    }

    pub(crate) fn and_then<U>(self, change: impl FnOnce(T) -> Option<U>, why_not: &str) -> Fact<U> {
        match self {
            Fact::Known(value) => match change(value) {
                Some(value) => Fact::Known(value),
                None => Fact::absent(why_not),
            },
            Fact::Absent { absent } => Fact::Absent { absent },
        }
    }

    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Known(value) => Fact::Known(change(value)),
            Fact::Absent { absent } => Fact::Absent { absent },
        }
    }

    /// The fact, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Fact::Known(value) => Some(value),
            Fact::Absent { .. } => None,
        }
    }

    /// Why it is absent, if it is.
    pub fn why_absent(&self) -> Option<&str> {
        match self {
            Fact::Known(_) => None,
            Fact::Absent { absent } => Some(absent),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Fact<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fact::Known(value) => value.fmt(f),
            Fact::Absent { absent } => write!(f, "none: {absent}"),
        }
    }
}

/// Whether something can be used, and if not, why. There is no third: what is not known cannot be used, for that reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(into = "Answer"))]
pub enum Support {
    /// It can be used.
    Yes,
    /// It cannot be used, for the reason given: a clause without a stop.
    No(String),
}

impl Support {
    /// Cannot be used, for the reason given.
    pub(crate) fn no(why: impl Into<String>) -> Support {
        Support::No(why.into())
    }

    /// Whether it can be used.
    pub fn is_yes(&self) -> bool {
        matches!(self, Support::Yes)
    }

    /// Why it cannot be used, if it cannot.
    pub fn why_not(&self) -> Option<&str> {
        match self {
            Support::Yes => None,
            Support::No(why) => Some(why),
        }
    }
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Support::Yes => f.write_str("yes"),
            Support::No(why) => write!(f, "no: {why}"),
        }
    }
}

/// The serialized form: the same key in both cases, so that a reader need not know the shape beforehand.
#[cfg(feature = "serde")]
#[derive(serde::Serialize)]
struct Answer {
    usable: bool,
    why_not: Option<String>,
}

#[cfg(feature = "serde")]
impl From<Support> for Answer {
    fn from(support: Support) -> Answer {
        match support {
            Support::Yes => Answer {
                usable: true,
                why_not: None,
            },
            Support::No(why) => Answer {
                usable: false,
                why_not: Some(why),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fact, Support};

    #[test]
    fn an_absent_fact_says_why() {
        let known = Fact::Known(7);
        assert_eq!(
            (known.known(), known.why_absent(), known.to_string()),
            (Some(&7), None, "7".to_owned())
        );
        let absent: Fact<u8> = Fact::from_result(Err("denied"), "uname");
        assert_eq!(absent.known(), None);
        assert_eq!(absent.to_string(), "none: uname: denied");
        assert_eq!(
            known.and_then(|_| None::<u8>, "odd").why_absent(),
            Some("odd")
        );
    }

    #[test]
    fn support_is_yes_or_no_with_a_reason() {
        assert!(Support::Yes.is_yes());
        let no = Support::no("too old");
        assert_eq!(
            (no.is_yes(), no.why_not(), no.to_string()),
            (false, Some("too old"), "no: too old".to_owned())
        );
    }
}
