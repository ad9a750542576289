//! [`Diagnosis`]: what stands between us and an object, found out step by step, with the next step for what is wrong.
//!
//! ```text
//! url -> settings -> credentials -> dns -> tcp -> tls -> http -> clock -> range -> validator -> open
//! ```
//! The steps up to TLS are taken with sockets of their own; the requests are those of a handle, over its client, and are
//! only watched.

mod advice;
mod calendar;
mod certificate;
mod clock;
mod credentials;
mod http;
mod link;
mod range;
mod tls;
mod understanding;
mod walk;
mod watch;

use std::fmt;
use std::time::Duration;

use kvik_core::ErrorKind;

use crate::failure::{Failure, clause_of};
use crate::redact;

pub(crate) use understanding::understand;
pub(crate) use walk::{Way, walk};

/// What [`RemoteOptions::diagnose`](crate::RemoteOptions::diagnose) has found. None of its texts shows a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The URL, without secrets.
    pub url: String,
    /// The steps in their order, all of them, but for `tls` where there is none. Those behind one that failed were not taken,
    /// but for `clock`.
    pub steps: Vec<Step>,
}

impl Diagnosis {
    /// The first step that failed, and how; `None` if the object can be read.
    #[must_use]
    pub fn failure(&self) -> Option<(&Step, ErrorKind)> {
        self.steps.iter().find_map(|step| match step.outcome {
            Outcome::Failed(kind) => Some((step, kind)),
            _ => None,
        })
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// What it was.
    pub stage: Stage,
    /// How it is.
    pub outcome: Outcome,
    /// What was found, in a clause.
    pub what: String,
    /// What else is known, each under a name of its own.
    pub facts: Vec<(&'static str, String)>,
    /// What to do; for each step that failed, and for each that could be better.
    pub advice: Option<String>,
}

/// What is looked at, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// What the URL means.
    Url,
    /// Whether settings and options can be used.
    Settings,
    /// Who asks.
    Credentials,
    /// Whether the name of the server, or of the proxy that it is asked by, has addresses.
    Dns,
    /// Whether somebody listens there.
    Tcp,
    /// Whether the server proves itself; only of `https`.
    Tls,
    /// Whether it answers a request for the first byte, after redirects.
    Http,
    /// Whether its clock and ours agree.
    Clock,
    /// Whether it sends ranges, and the right bytes.
    Range,
    /// By what a change of the object is noticed.
    Validator,
    /// Whether a handle opens.
    Open,
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// As it should be.
    Ok,
    /// It works, and could be better.
    Note,
    /// It does not work; reading would fail with this kind of error.
    Failed(ErrorKind),
    /// It was not taken: something before it failed, or a later step has it, as the handshake by way of a proxy.
    NotReached,
}

impl Stage {
    const ALL: [Stage; 11] = [
        Stage::Url,
        Stage::Settings,
        Stage::Credentials,
        Stage::Dns,
        Stage::Tcp,
        Stage::Tls,
        Stage::Http,
        Stage::Clock,
        Stage::Range,
        Stage::Validator,
        Stage::Open,
    ];

    /// Its name in one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Stage::Url => "url",
            Stage::Settings => "settings",
            Stage::Credentials => "credentials",
            Stage::Dns => "dns",
            Stage::Tcp => "tcp",
            Stage::Tls => "tls",
            Stage::Http => "http",
            Stage::Clock => "clock",
            Stage::Range => "range",
            Stage::Validator => "validator",
            Stage::Open => "open",
        }
    }
}

/// All steps in their order: those taken, and the others as not reached, but for TLS where there is none.
pub(crate) fn complete(mut steps: Vec<Step>, has_tls: bool) -> Vec<Step> {
    for stage in Stage::ALL {
        let is_there = steps.iter().any(|step| step.stage == stage);
        if !is_there && (has_tls || stage != Stage::Tls) {
            steps.push(Step::not_reached(stage));
        }
    }
    steps.sort_by_key(|step| Stage::ALL.iter().position(|stage| *stage == step.stage));
    steps
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Step {
    pub(crate) fn ok(stage: Stage, what: impl Into<String>) -> Step {
        Step {
            stage,
            outcome: Outcome::Ok,
            what: what.into(),
            facts: Vec::new(),
            advice: None,
        }
    }

    pub(crate) fn note(stage: Stage, what: impl Into<String>, advice: impl Into<String>) -> Step {
        Step {
            outcome: Outcome::Note,
            advice: Some(advice.into()),
            ..Step::ok(stage, what)
        }
    }

    pub(crate) fn failed(
        stage: Stage,
        kind: ErrorKind,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Step {
        Step {
            outcome: Outcome::Failed(kind),
            advice: Some(advice.into()),
            ..Step::ok(stage, what)
        }
    }

    pub(crate) fn of_failure(stage: Stage, failure: &Failure, advice: impl Into<String>) -> Step {
        Step::failed(stage, failure.kind, failure.why.clone(), advice)
    }

    pub(crate) fn of_error(stage: Stage, error: &kvik_core::Error) -> Step {
        let kind = error.kind();
        let advice = error.advice().unwrap_or_else(|| advice::of_kind(kind));
        Step::failed(stage, kind, clause_of(error), advice)
    }

    fn not_reached(stage: Stage) -> Step {
        Step::left(stage, "not reached")
    }

    /// One that another step has.
    fn left(stage: Stage, what: &str) -> Step {
        Step {
            outcome: Outcome::NotReached,
            ..Step::ok(stage, what)
        }
    }

    #[must_use]
    pub(crate) fn fact(mut self, name: &'static str, value: impl Into<String>) -> Step {
        self.facts.push((name, value.into()));
        self
    }

    /// With the fact, if there is one.
    #[must_use]
    fn maybe(self, name: &'static str, value: Option<String>) -> Step {
        match value {
            Some(value) => self.fact(name, value),
            None => self,
        }
    }

    /// Without any of `secrets`, which a server may have repeated.
    #[must_use]
    fn hiding(mut self, secrets: &[String]) -> Step {
        let facts = self.facts.iter_mut().map(|(_, value)| value);
        let texts = facts.chain([&mut self.what]).chain(&mut self.advice);
        for text in texts {
            *text = redact::hide(text, secrets);
        }
        self
    }

    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_))
    }
}

/// A step that found something to go on with, or the one that ends the walk.
type Seen<T> = Result<(Step, T), Step>;

/// A time for people to read.
fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvik_core::{Error, Op, Place};

    #[test]
    fn an_error_that_becomes_a_step_says_nothing_twice_and_has_the_advice_of_its_kind() {
        for (kind, advice) in [
            (ErrorKind::TooManyOpenFiles, "ulimit -n"),
            (ErrorKind::NotFound, "check the path"),
        ] {
            let error = Error::new(kind, Op::Open, "the reason: it is one");
            let place = Place::Url("https://host/a: b".into());
            for error in [error.clone(), error.at(&place)] {
                let step = Step::of_error(Stage::Open, &error);
                assert_eq!(step.what, "the reason: it is one");
                assert!(step.advice.as_deref().unwrap().contains(advice), "{step:?}");
            }
        }
    }

    #[test]
    fn each_stage_has_a_step_in_its_order() {
        let steps = vec![Step::ok(Stage::Url, "read"), Step::ok(Stage::Clock, "told")];
        for has_tls in [true, false] {
            let steps = complete(steps.clone(), has_tls);
            let stages: Vec<Stage> = steps.iter().map(|step| step.stage).collect();
            let expected = Stage::ALL
                .into_iter()
                .filter(|stage| has_tls || *stage != Stage::Tls);
            assert_eq!(stages, expected.collect::<Vec<_>>());
            let taken = steps.iter().filter(|step| step.outcome == Outcome::Ok);
            let taken: Vec<&str> = taken.map(|step| step.what.as_str()).collect();
            assert_eq!(taken, ["read", "told"]);
        }
    }
}
