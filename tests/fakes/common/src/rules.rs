//! Failures on demand, counts of calls, and the log of them.
//!
//! A rule is `NAME:WHEN:WHAT` or `NAME:WHEN:CODE:late`; several stand in a row with commas between them. NAME is a call, or
//! `*` for each of them. WHEN is `N`, the Nth call of that name from 1 on, `N+`, from the Nth on, or `*N`, each Nth. WHAT is
//! a code of the library, or `short` (half of what was asked for) or `zero` (nothing), where the call moves bytes. A late
//! rule lets the call queue its work, which then fails when it runs.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::variables;

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It does what it should.
    Pass,
    /// It returns this code and does nothing.
    Fail(i32),
    /// It succeeds, and what it queued fails with this code.
    Late(i32),
    /// It moves half of what was asked for.
    Short,
    /// It moves nothing.
    Zero,
}

/// The rules of one library, its counts and its log.
#[derive(Debug)]
pub struct Rules(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    rules: Vec<Rule>,
    calls: BTreeMap<String, u64>,
    all: u64,
    log: Option<String>,
}

#[derive(Debug)]
struct Rule {
    name: String,
    when: Nth,
    verdict: Verdict,
    /// How many such calls there were when the rule was given; it counts from there.
    since: u64,
}

#[derive(Debug)]
enum Nth {
    At(u64),
    From(u64),
    Each(u64),
}

impl Rules {
    /// The rules in the variable `name`.
    ///
    /// # Panics
    ///
    /// Where it holds something else: nobody would notice that the failure never comes.
    #[must_use]
    pub fn from_variable(name: &str) -> Rules {
        let mut book = Book::default();
        if let Some(text) = variables::text(name) {
            assert!(book.add(&text), "{name} holds no rules: {text}");
        }
        Rules(Mutex::new(book))
    }

    /// Counts a call, and says what becomes of it.
    pub fn verdict(&self, name: &str) -> Verdict {
        self.book().verdict(name)
    }

    /// Adds rules; false, and none is added, where `text` holds something else.
    pub fn add(&self, text: &str) -> bool {
        self.book().add(text)
    }

    /// Forgets all rules.
    pub fn clear(&self) {
        self.book().rules.clear();
    }

    /// How often `name` was called; `*` for all calls together.
    pub fn calls(&self, name: &str) -> u64 {
        self.book().count(name)
    }

    /// Starts the log, or empties it.
    pub fn start_log(&self) {
        self.book().log = Some(String::new());
    }

    /// What was called since the log was started, a line for each: thread and name.
    pub fn log(&self) -> String {
        self.book().log.clone().unwrap_or_default()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn verdict(&mut self, name: &str) -> Verdict {
        *self.calls.entry(name.to_owned()).or_default() += 1;
        self.all += 1;
        if let Some(log) = &mut self.log {
            let thread = std::thread::current().id();
            log.push_str(&format!("{thread:?} {name}\n"));
        }
        let hit = self.rules.iter().find(|rule| {
            let mine = rule.name == name || rule.name == "*";
            mine && rule.when.holds(self.count(&rule.name) - rule.since)
        });
        hit.map_or(Verdict::Pass, |rule| rule.verdict)
    }

    fn add(&mut self, text: &str) -> bool {
        let rules: Option<Vec<Rule>> = text.split(',').map(|rule| rule_of(rule.trim())).collect();
        let Some(rules) = rules else {
            return false;
        };
        for mut rule in rules {
            rule.since = self.count(&rule.name);
            self.rules.push(rule);
        }
        true
    }

    /// Calls of that name so far; `*` counts all calls together.
    fn count(&self, name: &str) -> u64 {
        if name == "*" {
            return self.all;
        }
        self.calls.get(name).copied().unwrap_or(0)
    }
}

impl Nth {
    fn holds(&self, nth: u64) -> bool {
        match *self {
            Nth::At(at) => nth == at,
            Nth::From(from) => nth >= from,
            Nth::Each(step) => nth.is_multiple_of(step),
        }
    }
}

fn rule_of(text: &str) -> Option<Rule> {
    let words: Vec<&str> = text.split(':').collect();
    let (name, when, verdict) = match words[..] {
        [name, when, "short"] => (name, when, Verdict::Short),
        [name, when, "zero"] => (name, when, Verdict::Zero),
        [name, when, code] => (name, when, Verdict::Fail(code.parse().ok()?)),
        [name, when, code, "late"] => (name, when, Verdict::Late(code.parse().ok()?)),
        _ => return None,
    };
    let rule = Rule {
        name: name.to_owned(),
        when: when_of(when)?,
        verdict,
        since: 0,
    };
    (!name.is_empty()).then_some(rule)
}

fn when_of(text: &str) -> Option<Nth> {
    let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
    if let Some(step) = text.strip_prefix('*') {
        return number(step).map(Nth::Each);
    }
    match text.strip_suffix('+') {
        Some(from) => number(from).map(Nth::From),
        None => number(text).map(Nth::At),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_cannot_be_read_are_refused_whole() {
        for text in [
            "",
            "cuInit",
            "cuInit:0:1",
            "cuInit:1:x",
            "a:1:2,b",
            "a:1:2:soon",
            "a:1:2:late:x",
            ":1:2",
        ] {
            let mut book = Book::default();
            assert!(!book.add(text) && book.rules.is_empty(), "{text}");
        }
        let text = "cuInit:1:100, *:*3:2,cuMemFree_v2:2+:700:late,cuFileRead:1:short";
        assert!(Book::default().add(text));
    }

    #[test]
    fn a_rule_counts_from_when_it_was_given() {
        let mut book = Book::default();
        book.verdict("a");
        assert!(book.add("a:2:7,*:*4:9,b:1+:3:late"));
        let verdicts = ["a", "a", "b", "a"].map(|name| book.verdict(name));
        let (pass, fail) = (Verdict::Pass, Verdict::Fail);
        assert_eq!(verdicts, [pass, fail(7), Verdict::Late(3), fail(9)]);
        assert_eq!((book.count("a"), book.count("*")), (4, 5));
    }
}
