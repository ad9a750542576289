//! HDFS by WebHDFS: the name node answers questions and sends readers on to the data node.

use kvik_tests::need;
use kvik_tests::pattern::assert_same;
use kvik_tests::server::{Fixture, Server};
use serde_json::Value;

use crate::plain::{Reply, get};

#[test]
fn the_name_node_sends_readers_to_the_data_node_which_has_every_byte() {
    let server = need::server("webhdfs");
    for fixture in Fixture::all() {
        let reply = open(&server, &fixture, "");
        assert_same(&reply.body, &fixture.bytes());
    }
}

#[test]
fn the_data_node_sends_a_range_and_no_more() {
    let server = need::server("webhdfs");
    let fixture = Fixture::named("medium");
    for range in [0..1, 4095..8193, fixture.len - 1..fixture.len] {
        let asked = format!("&offset={}&length={}", range.start, range.end - range.start);
        let reply = open(&server, &fixture, &asked);
        assert_same(&reply.body, &fixture.part(range));
    }
}

#[test]
fn the_name_node_tells_the_length_of_every_fixture() {
    let server = need::server("webhdfs");
    for fixture in Fixture::all() {
        let reply = ask(&server, &fixture.encoded(), "GETFILESTATUS", "");
        assert_eq!(reply.status, 200, "{}", fixture.name);
        let said: Value = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!(said["FileStatus"]["length"], fixture.len);
        assert_eq!(said["FileStatus"]["owner"], server.fact("user"));
    }
}

#[test]
fn a_file_that_is_not_there_is_a_remote_exception() {
    let server = need::server("webhdfs");
    let reply = ask(&server, "nothing", "OPEN", "");
    assert_eq!(reply.status, 404);
    let said: Value = serde_json::from_slice(&reply.body).unwrap();
    assert_eq!(
        said["RemoteException"]["exception"],
        "FileNotFoundException"
    );
}

fn ask(server: &Server, name: &str, op: &str, rest: &str) -> Reply {
    let (path, user) = (server.path(), server.fact("user"));
    let target = format!("{path}{name}?op={op}&user.name={user}{rest}");
    get(server.address(), &target, &[])
}

/// Follows the name node to the data node, which it names by the machine's name.
#[track_caller]
fn open(server: &Server, fixture: &Fixture, rest: &str) -> Reply {
    let reply = ask(server, &fixture.encoded(), "OPEN", rest);
    assert_eq!(reply.status, 307, "{}", fixture.name);
    let there = reply.field("Location").strip_prefix("http://localhost:");
    let there = there.unwrap();
    let (port, target) = there.split_at(there.find('/').unwrap());
    assert_eq!(server.fact("data"), format!("127.0.0.1:{port}"));
    let reply = get(server.fact("data"), target, &[]);
    assert_eq!(reply.status, 200, "{}", fixture.name);
    reply
}
