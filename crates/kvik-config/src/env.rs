//! The environment, read in this one place.

use std::ffi::OsString;

/// All variables as they are now.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the environment"
)]
pub(crate) fn variables() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// A variable that is no setting of ours, as it is now: keys and folders under names that others chose.
///
/// # Example: one that is not set
///
/// ```
/// assert_eq!(kvik_config::variable("NO_SUCH_VARIABLE"), None);
/// ```
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the environment"
)]
#[must_use]
pub fn variable(name: &str) -> Option<OsString> {
    // For a name with one of these there is no variable, and the standard library need not be asked what it does then.
    (!name.is_empty() && !name.contains(['=', '\0'])).then(|| std::env::var_os(name))?
}
