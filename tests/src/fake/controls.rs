//! What all fakes can be asked for: failures on demand, counts, the log, faults.

use std::ffi::CString;
use std::ops::Deref;

use super::{Library, at};

/// A fake that was loaded, and the prefix of its controls.
#[derive(Debug, Clone, Copy)]
pub struct Controls {
    library: Library,
    prefix: &'static str,
}

impl Deref for Controls {
    type Target = Library;

    fn deref(&self) -> &Library {
        &self.library
    }
}

impl Controls {
    pub(super) fn new(library: Library, prefix: &'static str) -> Controls {
        Controls { library, prefix }
    }

    /// Lets calls of `name` (`*`: all calls) return `code`: `when` is `N` (the Nth from now), `N+` (from it on) or `*N` (each Nth).
    pub fn fail(&self, name: &str, when: &str, code: i32) {
        self.rules(&format!("{name}:{when}:{code}"));
    }

    /// The same, but the call succeeds and what it queued fails when it runs; in libcuda that spoils its context.
    pub fn fail_late(&self, name: &str, when: &str, code: i32) {
        self.rules(&format!("{name}:{when}:{code}:late"));
    }

    /// Lets calls of `name` move half of what they were asked for.
    pub fn fall_short(&self, name: &str, when: &str) {
        self.rules(&format!("{name}:{when}:short"));
    }

    /// Forgets all rules.
    pub fn succeed(&self) {
        self.control("fail_clear", []);
    }

    /// How often `name` was called; `*` for all calls together.
    #[must_use]
    pub fn calls(&self, name: &str) -> usize {
        let mut name = text(name);
        self.call_for_word(&self.full("calls"), [at(name.as_mut_slice())])
    }

    /// Starts the log of calls, or empties it.
    pub fn start_log(&self) {
        self.control("log_start", []);
    }

    /// The log of calls: thread and name.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.lines("log")
    }

    /// What a correct program would not have done.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        self.lines("fault_text")
    }

    /// Adds rules as they stand in the variable of the fake.
    pub fn rules(&self, rules: &str) {
        let mut rules = text(rules);
        self.control("fail", [at(rules.as_mut_slice())]);
    }

    #[track_caller]
    pub(super) fn control<const N: usize>(&self, name: &str, words: [usize; N]) {
        assert_eq!(self.call(&self.full(name), words), 0, "{name} {words:?}");
    }

    pub(super) fn number(&self, name: &str) -> usize {
        self.call_for_word(&self.full(name), [])
    }

    pub(super) fn lines(&self, name: &str) -> Vec<String> {
        let name = self.full(name);
        let len = self.call_for_word(&name, [0, 0]);
        // Others may add to it meanwhile; what does not fit is cut off.
        let mut bytes = vec![0_u8; len + 1];
        self.call_for_word(&name, [at(bytes.as_mut_slice()), len + 1]);
        bytes.truncate(len);
        let lines = String::from_utf8(bytes).unwrap();
        lines.lines().map(str::to_owned).collect()
    }

    fn full(&self, name: &str) -> String {
        format!("{}_{name}", self.prefix)
    }
}

fn text(text: &str) -> Vec<u8> {
    CString::new(text).unwrap().into_bytes_with_nul()
}
