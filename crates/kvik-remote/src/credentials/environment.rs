//! Keys from the variables of the environment.

use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use kvik_core::Result;

use super::{Credentials, Finding, Keys, unusable};

/// How variables are looked up.
pub(super) type Lookup = Arc<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`. A variable that is set to nothing is not set.
///
/// # Example: variables for a test
/// ```
/// use kvik_remote::{Credentials, Environment};
///
/// let source = Environment::new(|name| (name == "AWS_ACCESS_KEY_ID").then(|| "AKIA".into()));
/// assert_eq!(source.to_string(), "the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
/// ```
#[derive(Clone)]
pub struct Environment(Lookup);

impl Environment {
    /// Variables are looked up by `lookup`, each time that keys are asked for.
    #[must_use]
    pub fn new(lookup: impl Fn(&str) -> Option<OsString> + Send + Sync + 'static) -> Environment {
        Environment(Arc::new(lookup))
    }

    fn keys(&self) -> Result<Option<Keys>> {
        let [id, secret, token] = [ID, SECRET, TOKEN].map(|name| text(&*self.0, name));
        Keys::of_pair(id?, secret?, token?, "the environment", [ID, SECRET])
    }
}

impl Credentials for Environment {
    fn find(&self) -> Finding<'_> {
        Box::pin(async { self.keys() })
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the variables {ID} and {SECRET}")
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment")
    }
}

/// The text of a variable; `None` where it is not set, or set to nothing.
pub(super) fn text(
    lookup: &dyn Fn(&str) -> Option<OsString>,
    name: &str,
) -> Result<Option<String>> {
    match lookup(name).map(OsString::into_string) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
        // It is not shown: it may be a key.
        Some(Err(_)) => Err(unusable(format!("{name} is no readable text"))),
    }
}

const ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
const TOKEN: &str = "AWS_SESSION_TOKEN";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::tests::found;

    fn of(variables: &[(&'static str, &'static str)]) -> Environment {
        let variables = variables.to_vec();
        Environment::new(move |name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.into())
        })
    }

    #[test]
    fn a_pair_is_taken_with_its_token_whatever_its_id_looks_like() {
        let source = of(&[(ID, "AKIA1"), (SECRET, "s"), (TOKEN, "t")]);
        let keys = found(&source).unwrap().expect("all three are set");
        assert_eq!(
            (keys.id(), keys.secret(), keys.session_token()),
            ("AKIA1", "s", Some("t"))
        );
        assert_eq!(keys.origin(), "the environment");
        let keys = found(&of(&[(ID, "ASIA1"), (SECRET, "s"), (TOKEN, "")]));
        assert_eq!(keys.unwrap().expect("a pair").session_token(), None);
    }

    #[test]
    fn half_a_pair_is_an_error_and_nothing_is_none() {
        let error = found(&of(&[(ID, "AKIA1"), (SECRET, "")])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "settings: the environment has AWS_ACCESS_KEY_ID and no AWS_SECRET_ACCESS_KEY"
        );
        let error = found(&of(&[(SECRET, "hunter22")])).unwrap_err();
        assert!(!error.to_string().contains("hunter22"), "{error}");
        assert_eq!(found(&of(&[(TOKEN, "t"), (ID, "")])).unwrap(), None);
        assert_eq!(found(&of(&[])).unwrap(), None);
    }

    #[test]
    fn what_is_no_text_is_an_error_that_does_not_show_it() {
        use std::os::unix::ffi::OsStringExt;
        let source = Environment::new(|_| Some(OsString::from_vec(b"hunter\xff".to_vec())));
        let error = found(&source).unwrap_err();
        assert_eq!(
            error.to_string(),
            "settings: AWS_ACCESS_KEY_ID is no readable text"
        );
    }
}
