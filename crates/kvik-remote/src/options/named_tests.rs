//! Names that other libraries have, values that are none, and what contradicts itself.

use super::*;
use std::collections::HashSet;
use std::time::Duration;

use kvik_config::ByteSize;
use proptest::prelude::*;

use crate::endpoint::Addressing;
use crate::location::Kind;
use crate::options::Anonymous;

fn read(map: &[(&str, &str)]) -> RemoteOptions {
    RemoteOptions::from_map(map.iter().copied()).unwrap()
}

#[track_caller]
fn refused(map: &[(&str, &str)]) -> String {
    let error = RemoteOptions::from_map(map.iter().copied()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    error.to_string()
}

/// A value of each option by its first name, and what becomes of it.
#[test]
fn every_option_is_set_by_each_of_its_names() {
    type Check = fn(&RemoteOptions) -> bool;
    let alone: &[(&str, &str, Check)] = &[
        ("kinds", "s3-public,http", |o| {
            o.kinds == Some(vec![Kind::S3Public, Kind::Http])
        }),
        ("len", "7", |o| o.len == Some(7)),
        ("profile", "mine", |o| {
            o.s3.profile.as_deref() == Some("mine")
        }),
        ("anonymous", "yes", |o| o.s3.anonymous == Anonymous::Always),
        ("requester_pays", "requester", |o| o.s3.requester_pays),
        ("bearer_token", "t", |o| {
            o.headers["authorization"] == "Bearer t"
        }),
        ("headers", "X-A: b\nX-C: d", |o| {
            o.headers["x-a"] == "b" && o.headers["x-c"] == "d"
        }),
        ("user_agent", "mine/1", |o| {
            o.headers["user-agent"] == "mine/1"
        }),
        ("region", "eu-west-1", |o| {
            o.s3.region.as_deref() == Some("eu-west-1")
        }),
        ("default_region", "eu-west-1", |o| {
            o.s3.region.as_deref() == Some("eu-west-1")
        }),
        ("endpoint_url", "http://h", |o| {
            o.s3.endpoint.as_deref() == Some("http://h")
        }),
        ("addressing_style", "virtual", |o| {
            o.s3.addressing == Some(Addressing::VirtualHost)
        }),
        ("virtual_hosted_style_request", "false", |o| {
            o.s3.addressing == Some(Addressing::Path)
        }),
        ("force_path_style", "true", |o| {
            o.s3.addressing == Some(Addressing::Path)
        }),
        ("hdfs_user", "me", |o| {
            format!("{:?}", o.hdfs).contains("user: Some(\"me\")")
        }),
        ("delegation", "t0ken", |o| {
            o.hdfs_secrets().contains(&"t0ken".to_owned())
        }),
        ("name_nodes", "nn1:9870, nn2", |o| {
            format!("{:?}", o.hdfs).contains("name_nodes: [\"nn1:9870\", \"nn2\"]")
        }),
        ("data_nodes", "dn1:9864=127.0.0.1:1, dn2=h", |o| {
            let said = format!("{:?}", o.hdfs);
            said.contains("dn1") && said.contains("127.0.0.1") && said.contains("dn2")
        }),
        ("proxy_url", "http://me:hunter22@proxy:3128", |o| {
            o.proxies
                .as_ref()
                .is_some_and(|proxies| !proxies.is_empty())
        }),
        ("ca_bundle", "/ca.pem", |o| {
            o.ca_bundle.as_deref() == Some("/ca.pem".as_ref())
        }),
        ("verify", "/ca.pem", |o| {
            o.ca_bundle.as_deref() == Some("/ca.pem".as_ref())
        }),
        ("allow_invalid_certificates", "false", |o| {
            o.ca_bundle.is_none()
        }),
        ("allow_http", "no", |o| o.https_only),
        ("timeout", "30", |o| {
            o.timeout == Some(Duration::from_secs(30))
        }),
        ("connect_timeout", "500ms", |o| {
            o.connect_timeout == Some(Duration::from_millis(500))
        }),
        ("first_byte_timeout", "2m", |o| {
            o.first_byte_timeout == Some(Duration::from_secs(120))
        }),
        ("idle_timeout", "9 s", |o| {
            o.idle_timeout == Some(Duration::from_secs(9))
        }),
        ("max_attempts", "5", |o| o.max_attempts == Some(5)),
        ("max_retries", "0", |o| o.max_attempts == Some(1)),
        ("init_backoff", "0", |o| {
            o.backoff == Some((Duration::ZERO, Duration::from_secs(10)))
        }),
        ("max_backoff", "1s", |o| {
            o.backoff == Some((Duration::from_millis(100), Duration::from_secs(1)))
        }),
        ("concurrency", "3", |o| o.concurrency == Some(3)),
        ("part_size", "8MiB", |o| {
            o.part_size == Some(ByteSize::mib(8))
        }),
        ("whole_limit", "1 KiB", |o| {
            o.whole_limit == Some(ByteSize::kib(1))
        }),
    ];
    for (first, value, check) in alone {
        let (_, option) = NamedOption::of(first).unwrap();
        assert_eq!(option.names()[0], *first);
        for name in option.names() {
            assert!(check(&read(&[(name, value)])), "{name}");
            let upper = name.to_uppercase();
            assert!(check(&read(&[(&upper, value)])), "{upper}");
        }
    }
    let parts = NamedOption::ALL
        .iter()
        .filter(|option| matches!(option.set, Set::Part(_)));
    assert_eq!(
        alone.len() + parts.count(),
        NamedOption::ALL.len(),
        "each has its line here"
    );
}

#[test]
fn keys_and_passwords_are_put_together_whatever_their_names() {
    for (id, secret, token) in [
        (
            "aws_access_key_id",
            "aws_secret_access_key",
            "aws_session_token",
        ),
        ("key", "secret", "token"),
        ("access_key_id", "SECRET_ACCESS_KEY", "session_token"),
    ] {
        let options = read(&[(token, "t0ken"), (id, "AKIAMINE"), (secret, "hunter22")]);
        let source = options.s3.credentials.as_ref().unwrap();
        let shown = format!("{options:?} {source:?}");
        assert!(
            shown.contains("AKIA...") && shown.contains("has_token: true"),
            "{shown}"
        );
        assert!(
            !shown.contains("hunter22") && !shown.contains("t0ken"),
            "{shown}"
        );
    }
    let options = read(&[("username", "u"), ("password", "p")]);
    assert_eq!(options.headers["authorization"], "Basic dTpw");
    for (name, value, missing) in [
        ("key", "AKIAMINE", "secret_access_key"),
        ("secret", "hunter22", "access_key_id"),
        ("token", "t0ken", "access_key_id"),
        ("username", "me", "password"),
        ("password", "hunter22", "username"),
    ] {
        let text = refused(&[(name, value)]);
        assert!(text.contains(&format!("no `{missing}`")), "{text}");
        assert!(!text.contains(value), "{text}");
    }
}

#[test]
fn a_name_that_is_none_is_refused_with_the_nearest_one() {
    for (name, near) in [
        ("regoin", Some("region")),
        ("aws_acces_key_id", Some("aws_access_key_id")),
        ("EndpointUrl", Some("endpoint_url")),
        ("colour", None),
        ("", None),
    ] {
        let text = refused(&[(name, "hunter22")]);
        let hint = text.split_once("; ").map(|(_, hint)| hint);
        assert_eq!(
            hint,
            near.map(|near| format!("`{near}` is one")).as_deref(),
            "{text}"
        );
        assert!(!text.contains("hunter22"), "{text}");
    }
    let long = "x".repeat(10_000);
    assert!(refused(&[(&long, "")]).len() < 200);
    assert!(refused(&[("a\nb", "")]).contains("a\\nb"));
}

#[test]
fn a_value_that_is_none_is_refused_with_what_it_has_to_be() {
    for option in NamedOption::ALL {
        let Set::Alone(_) = option.set else { continue };
        // What is text takes every text but none, and lists of lines take that, too.
        let wrong = match option.names[0] {
            "profile" | "bearer_token" | "user_agent" | "region" | "default_region"
            | "endpoint_url" | "ca_bundle" | "proxy_url" | "hdfs_user" | "delegation"
            | "name_nodes" => " ",
            "verify" => "no",
            _ => "hunter22",
        };
        for name in option.names() {
            let text = refused(&[(name, wrong)]);
            let says = format!("the value of `{name}` is not {}", option.expects());
            assert!(text.ends_with(&says), "{text}");
            assert!(!text.contains("hunter22"), "{text}");
        }
    }
    // What a setter finds wrong is told at once, too.
    let text = refused(&[("headers", "two words: hunter22")]);
    assert!(text.contains("the name of a header is none"), "{text}");
    let text = refused(&[("proxy", "ftp://me:hunter22@proxy")]);
    assert!(text.contains("is not an `http` or `https` URL"), "{text}");
    assert!(!text.contains("hunter22"), "{text}");
    for own in ["range: bytes=0-1", "transfer-encoding: chunked"] {
        assert!(refused(&[("headers", own)]).contains("each request has to choose"));
    }
}

#[test]
fn what_is_said_twice_must_be_the_same() {
    let same = read(&[("region", "a"), ("aws_region", "a"), ("region", "a")]);
    assert_eq!(same.s3.region.as_deref(), Some("a"));
    let text = refused(&[
        ("key", "one"),
        ("aws_access_key_id", "two"),
        ("secret", "s"),
    ]);
    let says = "`key` and `aws_access_key_id` are one option, and have two values";
    assert!(text.ends_with(says), "{text}");
    for (one, other) in [
        (("max_retries", "3"), ("max_attempts", "3")),
        (
            ("addressing_style", "virtual"),
            ("virtual_hosted_style_request", "true"),
        ),
        (("verify", "true"), ("ca_bundle", "/ca.pem")),
        (("username", "me"), ("bearer_token", "t0ken")),
    ] {
        let text = refused(&[one, other]);
        let says = format!("`{}` and `{}` are about the same", one.0, other.0);
        assert!(text.contains(&says), "{text}");
    }
    // A default gives way, wherever it stands.
    for map in [
        [("default_region", "a"), ("region", "b")],
        [("region", "b"), ("aws_default_region", "a")],
    ] {
        assert_eq!(read(&map).s3.region.as_deref(), Some("b"));
    }
}

#[test]
fn what_was_wrong_before_is_told_and_not_taken_for_the_fault_of_a_value() {
    let wrong = RemoteOptions::new().header("no name", "a");
    let before = wrong.wrong.clone().unwrap().to_string();
    for map in [
        ("data_nodes", "dn1=dn2"),
        ("data_nodes", "none"),
        ("proxy_url", "http://proxy:3128"),
        ("proxy_url", "ftp://proxy"),
        ("len", "7"),
        ("password", "half"),
    ] {
        let error = wrong.clone().with_map([map]).unwrap_err();
        assert_eq!(error.to_string(), before, "{map:?}");
    }
}

#[test]
fn a_name_means_one_thing_and_each_topic_is_an_option() {
    let mut names = HashSet::new();
    for option in NamedOption::ALL {
        assert!(
            !option.names().is_empty() && !option.says().is_empty() && !option.expects().is_empty()
        );
        for name in option.names() {
            assert!(names.insert(*name), "{name} stands in two rows");
            assert_eq!(*name, name.to_lowercase());
        }
        let topic = option.topic();
        assert!(
            NamedOption::ALL
                .iter()
                .any(|option| option.names[0] == topic),
            "{topic}"
        );
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_map_panic_or_is_shown(name in any::<String>(), value in "\\PC{0,24}", number in 0..1000_usize) {
        let _ = RemoteOptions::from_map([(&name, &value)]);
        let option = &NamedOption::ALL[number % NamedOption::ALL.len()];
        let value = format!("zq{value}");
        for name in option.names() {
            if let Err(error) = RemoteOptions::from_map([(name, &value)]) {
                let shown = format!("{error} {error:?}");
                prop_assert!(!shown.contains(&value), "{shown}");
            }
        }
    }
}
