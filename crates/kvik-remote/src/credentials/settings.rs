//! What else the environment and the profile say about S3: region, endpoint, certificates. Pure.

use std::ffi::OsString;
use std::fmt;

use kvik_core::Result;

use super::{Profile, environment};
use crate::redact;

/// A value, and who said it.
/// Its `Debug` hides a value that may name a user, or have a query.
#[derive(Clone, PartialEq, Eq)]
pub struct Said {
    /// What was said.
    pub value: String,
    /// A variable or a profile, for people to read.
    pub origin: String,
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = if self.value.contains(['@', '?']) {
            redact::HIDDEN
        } else {
            &self.value
        };
        write!(f, "{shown} by {}", self.origin)
    }
}

/// What holds for S3 where the caller says nothing. The environment comes before the profile, as AWS's own tools have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AwsSettings {
    /// `AWS_REGION`, `AWS_DEFAULT_REGION`, or the profile's.
    pub region: Option<Said>,
    /// `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, or the profile's, unless `AWS_IGNORE_CONFIGURED_ENDPOINT_URLS` is `true`.
    pub endpoint_url: Option<Said>,
    /// The profile's. The variable `AWS_CA_BUNDLE` is one of those of the setting `ca_bundle`.
    pub ca_bundle: Option<Said>,
    /// The profile's.
    pub addressing_style: Option<Said>,
}

impl AwsSettings {
    /// What the variables and `profile` say.
    ///
    /// # Errors
    /// `Config` for a variable that is no readable text.
    pub fn read(
        lookup: impl Fn(&str) -> Option<OsString>,
        profile: Option<&Profile>,
    ) -> Result<AwsSettings> {
        let of_variables = |names: &[&str]| -> Result<Option<Said>> {
            for name in names {
                if let Some(value) = environment::text(&lookup, name)? {
                    let origin = (*name).to_owned();
                    return Ok(Some(Said { value, origin }));
                }
            }
            Ok(None)
        };
        let of_profile = |value: fn(&Profile) -> Option<String>| {
            let profile = profile?;
            let origin = format!("the profile `{}`", profile.name());
            Some(Said {
                value: value(profile)?,
                origin,
            })
        };
        let ignores = match environment::text(&lookup, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")? {
            Some(said) => said.eq_ignore_ascii_case("true"),
            None => profile.is_some_and(Profile::ignores_endpoints),
        };
        let endpoint_url = of_variables(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])?
            .or_else(|| of_profile(Profile::endpoint_url))
            .filter(|_| !ignores);
        Ok(AwsSettings {
            region: of_variables(&["AWS_REGION", "AWS_DEFAULT_REGION"])?
                .or_else(|| of_profile(Profile::region)),
            endpoint_url,
            ca_bundle: of_profile(Profile::ca_bundle),
            addressing_style: of_profile(Profile::addressing_style),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Profiles;

    const CONFIG: &str =
        "[default]\nregion = eu-west-1\nendpoint_url = http://profile\nca_bundle = /ca.pem\n";

    fn read(variables: &[(&str, &str)]) -> AwsSettings {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.into())
        };
        let profile = Profiles::read(CONFIG, "").unwrap().get("default");
        AwsSettings::read(lookup, profile.as_ref()).unwrap()
    }

    #[track_caller]
    fn check(said: Option<Said>, expected: Option<(&str, &str)>) {
        let said = said.map(|said| (said.value, said.origin));
        let expected = expected.map(|(value, origin)| (value.to_owned(), origin.to_owned()));
        assert_eq!(said, expected);
    }

    #[test]
    fn variables_come_before_the_profile_and_special_ones_before_general_ones() {
        let profile = "the profile `default`";
        let settings = read(&[]);
        check(settings.region, Some(("eu-west-1", profile)));
        check(settings.endpoint_url, Some(("http://profile", profile)));
        check(settings.ca_bundle, Some(("/ca.pem", profile)));
        let settings = read(&[
            ("AWS_DEFAULT_REGION", "a"),
            ("AWS_REGION", "b"),
            ("AWS_ENDPOINT_URL", "http://all"),
        ]);
        check(settings.region, Some(("b", "AWS_REGION")));
        check(
            settings.endpoint_url,
            Some(("http://all", "AWS_ENDPOINT_URL")),
        );
        let settings = read(&[
            ("AWS_ENDPOINT_URL", "a"),
            ("AWS_ENDPOINT_URL_S3", "b"),
            ("AWS_REGION", ""),
        ]);
        check(settings.endpoint_url, Some(("b", "AWS_ENDPOINT_URL_S3")));
        check(settings.region, Some(("eu-west-1", profile)));
    }

    #[test]
    fn configured_endpoints_are_passed_over_where_that_is_asked_for() {
        let settings = read(&[
            ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "True"),
            ("AWS_ENDPOINT_URL", "a"),
        ]);
        check(settings.endpoint_url, None);
        let settings = read(&[("AWS_ENDPOINT_URL", "http://u:hunter22@h")]);
        assert!(
            !format!("{settings:?}").contains("hunter22"),
            "{settings:?}"
        );
    }
}
