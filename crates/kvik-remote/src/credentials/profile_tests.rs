//! What broke elsewhere: `AWS_PROFILE` that was not looked at, a missing profile that became anonymous access, tokens of one
//! source with the keys of another.

use super::*;
use crate::credentials::tests::found;

const CONFIG: &str = "\
[default]
region = us-west-2
[profile default]
region = eu-west-1
endpoint_url = http://all:1
services = mine
s3 =
    addressing_style = path
[services mine]
s3 =
    endpoint_url = http://s3:2
[profile half]
aws_access_key_id = AKHALF
[profile own]
aws_access_key_id = AKCONFIG
aws_secret_access_key = config-secret
aws_session_token = config-token
[profile both]
aws_access_key_id = AKCONFIG
aws_secret_access_key = config-secret
aws_session_token = config-token
[profile role]
role_arn = arn:aws:iam::1:role/r
source_profile = default
[profile sso]
sso_session = s
[profile plain]
endpoint_url = http://plain:3
[bare]
region = nowhere
";
const CREDENTIALS: &str = "\
[default]
aws_access_key_id = AKDEFAULT
aws_secret_access_key = default-secret
[both]
aws_access_key_id = AKCRED
aws_secret_access_key = cred-secret
[profile odd]
aws_access_key_id = AKODD
aws_secret_access_key = odd-secret
";

fn profiles() -> Profiles {
    Profiles::read(CONFIG, CREDENTIALS).expect("both are right")
}

#[track_caller]
fn check_keys(name: &str, id: &str, secret: &str, token: Option<&str>) {
    let profile = profiles().get(name).expect("the profile is there");
    let keys = profile.keys().unwrap().expect("it has keys");
    assert_eq!(
        (keys.id(), keys.secret(), keys.session_token()),
        (id, secret, token)
    );
    assert_eq!(keys.origin(), format!("the profile `{name}`"));
}

#[test]
fn keys_of_the_credentials_file_come_first_and_take_no_token_of_another() {
    check_keys("default", "AKDEFAULT", "default-secret", None);
    check_keys("own", "AKCONFIG", "config-secret", Some("config-token"));
    check_keys("both", "AKCRED", "cred-secret", None);
    for name in ["odd", "bare", "nobody"] {
        assert!(profiles().get(name).is_none(), "{name}");
    }
}

#[test]
fn a_profile_says_region_endpoint_and_style() {
    let profile = profiles().get("default").expect("it is there");
    assert_eq!(profile.region().as_deref(), Some("eu-west-1"));
    assert_eq!(profile.endpoint_url().as_deref(), Some("http://s3:2"));
    assert_eq!(profile.addressing_style().as_deref(), Some("path"));
    let plain = profiles().get("plain").expect("it is there");
    assert_eq!(plain.endpoint_url().as_deref(), Some("http://plain:3"));
    assert!(plain.keys().unwrap().is_none());
}

#[test]
fn what_a_profile_cannot_give_is_an_error_and_not_no_keys() {
    for (name, kind, part) in [
        ("half", ErrorKind::Config, "no aws_secret_access_key"),
        ("role", ErrorKind::Unsupported, "role_arn"),
        ("sso", ErrorKind::Unsupported, "sso_session"),
    ] {
        let error = profiles()
            .get(name)
            .expect("it is there")
            .keys()
            .unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

fn lookup(variables: &[(&'static str, String)]) -> impl Fn(&str) -> Option<OsString> + use<> {
    let variables = variables.to_vec();
    move |name| {
        let found = variables.iter().find(|(known, _)| *known == name)?;
        Some(found.1.clone().into())
    }
}

#[test]
fn the_files_are_those_that_the_variables_name() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    fs::create_dir_all(home.join(".aws")).unwrap();
    fs::write(home.join(".aws/config"), CONFIG).unwrap();
    fs::write(home.join(".aws/credentials"), CREDENTIALS).unwrap();
    fs::write(
        home.join("other"),
        "[both]\naws_access_key_id=AKOTHER\naws_secret_access_key=x\n",
    )
    .unwrap();
    let at = |path: &Path| path.display().to_string();

    let home = ("HOME", at(&home));
    let files = ProfileFiles::from_lookup(lookup(std::slice::from_ref(&home)), None).unwrap();
    assert_eq!(found(&files).unwrap().expect("default").id(), "AKDEFAULT");

    let other = ("AWS_SHARED_CREDENTIALS_FILE", "~/other".to_owned());
    let named = ("AWS_PROFILE", "both".to_owned());
    let all = lookup(&[home.clone(), other, named]);
    let files = ProfileFiles::from_lookup(&all, None).unwrap();
    assert_eq!(found(&files).unwrap().expect("both").id(), "AKOTHER");
    // What the caller names is meant before what a variable names.
    let files = ProfileFiles::from_lookup(&all, Some("own")).unwrap();
    assert_eq!(found(&files).unwrap().expect("own").id(), "AKCONFIG");
}

#[test]
fn a_missing_profile_is_an_error_that_lists_where_it_looked() {
    let home = ("HOME", "/nonexistent".to_owned());
    let files = ProfileFiles::from_lookup(lookup(std::slice::from_ref(&home)), None).unwrap();
    assert!(found(&files).unwrap().is_none());
    let files = ProfileFiles::from_lookup(lookup(&[home]), Some("mine")).unwrap();
    assert_eq!(
        found(&files).unwrap_err().to_string(),
        "settings: there is no profile `mine` in /nonexistent/.aws/config and /nonexistent/.aws/credentials"
    );
    let files = ProfileFiles::from_lookup(|_| None, Some("mine")).unwrap();
    assert!(
        found(&files)
            .unwrap_err()
            .to_string()
            .contains("neither HOME")
    );
}

#[test]
fn a_bad_line_is_named_and_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("credentials");
    fs::write(&path, "[default]\nhunter22\n").unwrap();
    let variable = ("AWS_SHARED_CREDENTIALS_FILE", path.display().to_string());
    let files = ProfileFiles::from_lookup(lookup(&[variable]), None).unwrap();
    let error = found(&files).unwrap_err();
    assert!(error.to_string().contains("line 2 of "), "{error}");
    assert!(!format!("{error:?}").contains("hunter22"), "{error:?}");
}
