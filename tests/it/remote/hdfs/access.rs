//! Who may read from a cluster of HDFS, by which name node, and what refusals say.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use kvik::stats::names::HTTP_RETRIES;
use kvik::{ByteSize, Config, Error, ErrorKind, Layer, Location, ReadAtExt};
use kvik_tests::hdfs::{Cluster, Node, Query, Setup, exception};
use kvik_tests::hostile::Reply;
use kvik_tests::pattern::{assert_same, pattern};

use super::{LEN, cluster, offsets, quick, reads};
use crate::child;

fn texts(error: &Error) -> String {
    let source = std::error::Error::source(error);
    format!("{error} {error:?} {source:?}")
}

/// mtth/hdfs#19, #11, #34, jingw/pyhdfs#15, fsspec/filesystem_spec#1428: `=`, `%`, `+`, a space or an umlaut in a path, and a
/// user whose name has an `@` or a space.
#[test]
fn w1_paths_and_users_arrive_as_they_were_typed() {
    let cluster = Cluster::start(Setup::default());
    for path in [
        "/a=b/c",
        "/100%/d",
        "/c+d e",
        "/\u{fc}ber/%41",
        "/q?x=1&y#z;'(1),2",
    ] {
        cluster.put(path, path.as_bytes());
        let location = Location::from_base_path(&cluster.url("/"), path).unwrap();
        let options = quick().hdfs_user("me@example.org and you");
        let file = options.open_location(&location).unwrap();
        assert_eq!(file.read_to_end(0).unwrap(), path.as_bytes());
    }
    for node in [Node::Name(0), Node::Data(0)] {
        for asked in cluster.asked(node) {
            let user = Query::of(&asked).value("user.name");
            assert_eq!(user.as_deref(), Some("me@example.org and you"), "{asked:?}");
            assert!(
                !asked.path.contains(' ') && !asked.path.contains("%2525"),
                "{asked:?}"
            );
        }
    }
}

#[test]
fn the_user_is_that_of_the_call_else_of_the_url_else_of_the_settings() {
    let cluster = cluster(Setup::default());
    let set = Config::resolve([Layer::new().webhdfs_username(Some("set".to_owned()))]).unwrap();
    let with = cluster.url("/file?user.name=url");
    for (options, url, user) in [
        (quick().config(&set).hdfs_user("call"), &with, Some("call")),
        (quick().config(&set), &with, Some("url")),
        (quick().config(&set), &cluster.url("/file"), Some("set")),
        (quick(), &cluster.url("/file"), None),
    ] {
        options.open(url).unwrap();
        let last = Query::of(cluster.asked(Node::Name(0)).last().unwrap());
        assert_eq!(last.value("user.name").as_deref(), user);
    }
    let said = child("remote-open").arg(cluster.url("/file"));
    let said = said.env("KVIKIO_WEBHDFS_USERNAME", "variable").succeeds();
    assert_eq!(said, format!("WebHDFS, {LEN} bytes\n"));
    let last = Query::of(cluster.asked(Node::Name(0)).last().unwrap());
    assert_eq!(last.value("user.name").as_deref(), Some("variable"));
}

/// sequenceiq/hadoop-docker#50, apache/hadoop#2135: the explanation is lost.
#[test]
fn w2_refusals_are_told_with_their_exception_and_message() {
    let refusals: [(u16, &str, &str, ErrorKind, u64); 7] = [
        (
            404,
            "FileNotFoundException",
            "File does not exist: /file",
            ErrorKind::NotFound,
            0,
        ),
        (
            403,
            "AccessControlException",
            "Permission denied: user=me",
            ErrorKind::PermissionDenied,
            0,
        ),
        (
            401,
            "SecurityException",
            "Failed to obtain user group",
            ErrorKind::PermissionDenied,
            0,
        ),
        (
            403,
            "IOException",
            "Blocklist has no nodes",
            ErrorKind::Refused,
            0,
        ),
        (
            400,
            "IllegalArgumentException",
            "Invalid value for user.name",
            ErrorKind::Misuse,
            0,
        ),
        (
            500,
            "RuntimeException",
            "the server is broken",
            ErrorKind::Refused,
            2,
        ),
        (
            403,
            "RetriableException",
            "the name node starts",
            ErrorKind::Refused,
            2,
        ),
    ];
    for (status, name, message, kind, retries) in refusals {
        let refuse = move |_, _: &_, _| exception(status, name, message).script();
        let cluster = cluster(Setup::default().changed(refuse));
        let options = quick().max_attempts(3);
        let before = HTTP_RETRIES.get();
        let error = options.open(&cluster.url("/file")).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("{name}: {message}")), "{text}");
        assert!(
            !text.contains("JavaClass") && text.contains(&status.to_string()),
            "{text}"
        );
        assert_eq!(HTTP_RETRIES.get() - before, retries, "{error}");
    }
    // A page for people, of a proxy that wants a login, in the place of either answer.
    for op in ["GETFILESTATUS", "OPEN"] {
        let login = move |_, asked: &_, right: Reply| {
            let is_asked = Query::of(asked).value("op").as_deref() == Some(op);
            match is_asked {
                true => Reply::with(200, b"<!DOCTYPE html><title>Log in</title>")
                    .header("content-type", "text/html; charset=utf-8")
                    .script(),
                false => right.script(),
            }
        };
        let cluster = cluster(Setup::default().changed(login));
        let before = HTTP_RETRIES.get();
        let read = quick()
            .open(&cluster.url("/file"))
            .and_then(|file| file.read_to_end(0));
        let error = read.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadReply, "{error}");
        assert!(error.to_string().contains("page of HTML"), "{error}");
        assert_eq!(HTTP_RETRIES.get(), before, "{error}");
    }
}

#[test]
fn a_delegation_token_goes_to_the_name_nodes_and_theirs_to_the_data_nodes() {
    let token = "JAAEc2xh+dmVz/_-";
    let cluster = cluster(Setup {
        token: Some(token.to_owned()),
        ..Setup::default()
    });
    let in_url = cluster.url("/file?delegation=JAAEc2xh%2BdmVz%2F_-");
    for (options, url) in [
        (quick(), &in_url),
        (quick().delegation(token), &cluster.url("/file")),
        (
            quick().delegation(token),
            &cluster.url("/file?delegation=old"),
        ),
    ] {
        let file = options.open(url).unwrap();
        assert_same(&file.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
        let shown = format!("{file:?} {} {options:?}", file.url());
        assert!(!shown.contains("JAAE"), "{shown}");
    }
    let asked = [cluster.asked(Node::Data(0)), cluster.asked(Node::Data(1))].concat();
    for asked in asked {
        let query = Query::of(&asked);
        assert_eq!(
            query.value("delegation").as_deref(),
            Some("of-the-data-node")
        );
    }
}

#[test]
fn no_text_shows_a_token_that_a_node_says() {
    let token = "JAAEc2xh+dmVz/_-";
    let setup = Setup {
        token: Some(token.to_owned()),
        ..Setup::default()
    };
    let echo = |node, asked: &kvik_tests::hostile::Asked, right: Reply| {
        let said = Query::of(asked).value("delegation").unwrap_or_default();
        match node {
            Node::Data(_) => exception(403, "InvalidToken", &format!("{said} {}", asked.path)),
            Node::Name(_) if asked.path.contains("/other") => exception(
                403,
                "AccessControlException",
                &format!("{said} {}", asked.path),
            ),
            Node::Name(_) => right,
        }
        .script()
    };
    let cluster = cluster(setup.changed(echo));
    for (path, says) in [
        ("/file", "InvalidToken"),
        ("/other", "AccessControlException"),
    ] {
        let read = quick()
            .delegation(token)
            .open(&cluster.url(path))
            .and_then(|file| file.read_to_end(0));
        let error = read.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        let text = texts(&error);
        assert!(text.contains(says), "{text}");
        for secret in [token, "JAAEc2xh%2BdmVz%2F_-", "of-the-data-node"] {
            assert!(!text.contains(secret), "{secret} is in: {text}");
        }
    }
}

/// Another handle has made the function give the next token by the time that the first one is refused.
#[test]
fn no_text_shows_the_token_of_a_function_that_a_node_says_after_it_was_renewed() {
    let barrier = Arc::new(Barrier::new(2));
    let held = Arc::clone(&barrier);
    let setup = Setup::default().changed(move |_, asked, right| {
        let sent = asked.header("authorization").unwrap_or_default();
        if asked.path.contains("/held") {
            held.wait();
            held.wait();
            return exception(403, "InvalidToken", &format!("not {sent}")).script();
        }
        match sent {
            "Bearer token-1" => Reply::status(401).script(),
            _ => right.script(),
        }
    });
    let cluster = cluster(setup);
    let calls = AtomicUsize::new(0);
    let options = quick().bearer_from(move || {
        let call = calls.fetch_add(1, Ordering::Relaxed) + 1;
        Ok::<_, String>(format!("token-{call}"))
    });
    let opening = options.submit_open(&cluster.url("/held"));
    barrier.wait();
    options.open(&cluster.url("/file")).unwrap();
    barrier.wait();
    let error = opening.wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    let text = texts(&error);
    assert!(text.contains("InvalidToken: not ***"), "{text}");
    assert!(!text.contains("token-1"), "{text}");
}

#[test]
fn a_cluster_that_wants_kerberos_is_told_as_such_with_what_can_be_done() {
    let cluster = cluster(Setup {
        token: Some("JAAEc2xhdmVz".to_owned()),
        ..Setup::default()
    });
    let error = quick().open(&cluster.url("/file")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    let text = error.to_string();
    assert!(
        text.contains("Kerberos") && text.contains("`RemoteOptions::delegation`"),
        "{text}"
    );
    assert_eq!(cluster.count("GETFILESTATUS"), 1);
}

#[test]
fn the_active_name_node_is_found_and_found_again_after_a_failover() {
    let cluster = cluster(Setup {
        name_nodes: 3,
        ..Setup::default()
    });
    cluster.activate(1);
    let nodes: Vec<_> = (0..3).map(|number| cluster.name_node(number)).collect();
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let options = quick().name_nodes(&nodes).max_attempts(2);
    let file = options.open("webhdfs://any-name/file").unwrap();
    assert_same(&file.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
    let count = |number| cluster.asked(Node::Name(number)).len();
    // The one on standby was asked once and never again.
    assert_eq!((count(0), count(2)), (1, 0));
    cluster.activate(2);
    assert_same(&file.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
    assert!(count(2) > 0);
    // One that is gone is passed over as well.
    let nodes = ["127.0.0.1:1", nodes[2]];
    let file = quick()
        .name_nodes(&nodes)
        .open("webhdfs://any-name/file")
        .unwrap();
    assert_same(&file.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
    cluster.activate(9);
    let before = HTTP_RETRIES.get();
    let error = options.open("webhdfs://any-name/file").unwrap_err();
    assert_eq!(HTTP_RETRIES.get() - before, 1);
    let text = error.to_string();
    assert!(
        text.contains("none of 3 name nodes is active") && text.contains("StandbyException"),
        "{text}"
    );
}

#[test]
fn what_the_caller_sends_along_goes_to_name_nodes_only() {
    let cluster = cluster(Setup::default());
    let options = quick().bearer("a-token").header("X-Key", "a key");
    let options = options.part_size(ByteSize::kib(32));
    let file = options.open(&cluster.url("/file")).unwrap();
    assert_same(&file.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
    let has = |node| {
        let asked = cluster.asked(node);
        let with = asked.iter().filter(|asked| {
            asked.header("authorization").is_some() && asked.header("x-key").is_some()
        });
        (with.count(), asked.len())
    };
    let (with, all) = has(Node::Name(0));
    assert_eq!(with, all);
    for node in [Node::Data(0), Node::Data(1)] {
        let (with, all) = has(node);
        assert!(with == 0 && all > 0, "{with} of {all}");
    }
}

/// A gateway that sends readers on to itself wants to know who asks, there too.
#[test]
fn a_gateway_that_points_to_itself_is_given_the_token_of_a_function_by_the_first_request() {
    let object = pattern(1, 0, LEN);
    let setup = Setup::default().changed(move |_, asked, right| {
        let query = Query::of(asked);
        let (offset, length) = (query.number("offset"), query.number("length"));
        if asked.header("authorization") != Some("Bearer a-token") {
            return Reply::status(401).script();
        }
        match (offset, length, query.value("data")) {
            (Some(offset), Some(length), Some(_)) => {
                let bytes = &object[offset as usize..(offset + length) as usize];
                Reply::with(200, bytes).script()
            }
            (Some(_), ..) => Reply::redirect(307, &format!("{}&data=true", asked.path)).script(),
            _ => right.script(),
        }
    });
    let cluster = cluster(setup);
    let options = quick().bearer_from(|| Ok::<_, String>("a-token".to_owned()));
    let file = options.open(&cluster.url("/file")).unwrap();
    for offset in [10, 20, 30] {
        reads(&file, offset, 10);
    }
    // The first one is sent on, the others go where it led.
    let asked = offsets(&cluster.asked(Node::Name(0)));
    assert_eq!(asked, [(10, 10), (10, 10), (20, 10), (30, 10)]);
}

#[test]
fn a_cap_of_one_request_is_no_end_of_a_read() {
    let cluster = cluster(Setup::default());
    let one = Layer::new().remote_io_max_concurrent_requests(1);
    let config = Config::resolve([one]).unwrap();
    let options = quick().config(&config).part_size(ByteSize::kib(8));
    let file = options.open(&cluster.url("/file")).unwrap();
    assert_same(&file.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
}
