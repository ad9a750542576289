//! Failures on demand, counts of calls, and the log of them.
//!
//! A rule is `NAME:WHEN:CODE` or `NAME:WHEN:CODE:late`; several stand in a row with commas between them. NAME is an exported
//! call, or `*` for each of them. WHEN is `N`, the Nth call of that name from 1 on, `N+`, from the Nth on, or `*N`, each Nth.
//! A late rule lets the call queue its work, which then fails when it runs, and takes its context with it.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::abi::Code;
use crate::settings;

pub(crate) enum Verdict {
    Pass,
    Fail(Code),
    Late(Code),
}

struct Rule {
    name: String,
    when: Nth,
    code: Code,
    late: bool,
    /// How many such calls there were when the rule was given; it counts from there.
    since: u64,
}

enum Nth {
    At(u64),
    From(u64),
    Each(u64),
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

#[derive(Default)]
struct Book {
    rules: Vec<Rule>,
    calls: BTreeMap<String, u64>,
    all: u64,
    log: Option<String>,
}

// Not part of the world: a call is counted before it waits for anything.
static BOOK: LazyLock<Mutex<Book>> = LazyLock::new(|| {
    let mut book = Book::default();
    if let Some(text) = settings::text("FAKE_CUDA_FAIL") {
        // Nobody would notice that the failure never comes.
        assert!(book.add(&text), "FAKE_CUDA_FAIL holds no rules: {text}");
    }
    Mutex::new(book)
});

impl Book {
    /// Adds the rules of `text`; adds none of them where one cannot be read.
    fn add(&mut self, text: &str) -> bool {
        let Some(rules) = text
            .split(',')
            .map(|rule| rule_of(rule.trim()))
            .collect::<Option<Vec<Rule>>>()
        else {
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

/// Counts the call, and says what becomes of it.
pub(crate) fn verdict(name: &str) -> Verdict {
    let mut book = book();
    *book.calls.entry(name.to_owned()).or_default() += 1;
    book.all += 1;
    if let Some(log) = &mut book.log {
        let thread = std::thread::current().id();
        log.push_str(&format!("{thread:?} {name}\n"));
    }
    let hit = book.rules.iter().find(|rule| {
        let mine = rule.name == name || rule.name == "*";
        mine && rule.when.holds(book.count(&rule.name) - rule.since)
    });
    match hit {
        None => Verdict::Pass,
        Some(rule) if rule.late => Verdict::Late(rule.code),
        Some(rule) => Verdict::Fail(rule.code),
    }
}

/// Adds rules; false where `text` holds something else.
pub(crate) fn add(text: &str) -> bool {
    book().add(text)
}

pub(crate) fn clear() {
    book().rules.clear();
}

pub(crate) fn calls(name: &str) -> u64 {
    book().count(name)
}

/// Starts the log, or empties it.
pub(crate) fn start_log() {
    book().log = Some(String::new());
}

/// What was called since the log was started, a line for each: thread and name.
pub(crate) fn log() -> String {
    book().log.clone().unwrap_or_default()
}

fn rule_of(text: &str) -> Option<Rule> {
    let mut words = text.split(':');
    let name = words.next().filter(|name| !name.is_empty())?.to_owned();
    let when = when_of(words.next()?)?;
    let code = words.next()?.parse().ok()?;
    let late = match words.next() {
        None => false,
        Some("late") => true,
        Some(_) => return None,
    };
    words.next().is_none().then_some(Rule {
        name,
        when,
        code,
        late,
        since: 0,
    })
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

fn book() -> MutexGuard<'static, Book> {
    BOOK.lock().unwrap_or_else(PoisonError::into_inner)
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
        ] {
            assert!(!Book::default().add(text), "{text}");
        }
        assert!(Book::default().add("cuInit:1:100, *:*3:2,cuMemFree_v2:2+:700:late"));
    }

    #[test]
    fn a_rule_counts_from_when_it_was_given() {
        let mut book = Book::default();
        book.calls.insert("a".to_owned(), 5);
        assert!(book.add("a:1:2"));
        assert_eq!(book.rules[0].since, 5);
        assert!(Nth::Each(2).holds(4) && !Nth::Each(2).holds(3) && Nth::From(2).holds(9));
    }
}
