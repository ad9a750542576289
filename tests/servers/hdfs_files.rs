//! Files of a real HDFS through the door of kvik.

use kvik::{ByteSize, ErrorKind, Kind, ReadAtExt, RemoteOptions};
use kvik_tests::need;
use kvik_tests::pattern::assert_same;
use kvik_tests::remote::quick;
use kvik_tests::server::{Fixture, Server};

use crate::ranges::ranges_are_right;

fn options(server: &Server) -> RemoteOptions {
    quick().hdfs_user(server.fact("user"))
}

#[test]
fn every_fixture_is_read_from_hdfs_byte_for_byte() {
    let server = need::server("webhdfs");
    for fixture in Fixture::all() {
        let options = options(&server).part_size(ByteSize::kib(200));
        let file = options.open(&server.url_of(&fixture)).unwrap();
        assert_eq!((file.len(), file.kind()), (fixture.len, Kind::WebHdfs));
        assert!(file.validator().unwrap().last_modified().is_some());
        assert_same(&file.read_to_end(0).unwrap(), &fixture.bytes());
        // By the scheme of Hadoop's own programs it is the same one.
        let (_, rest) = server.url().split_once("://").unwrap();
        let rest = rest.replacen("/webhdfs/v1", "", 1);
        let same = options
            .open(&format!("webhdfs://{rest}{}", fixture.encoded()))
            .unwrap();
        assert_eq!(same.validator(), file.validator());
    }
}

#[test]
fn ranges_of_a_file_of_hdfs_are_those_that_were_asked_for() {
    let server = need::server("webhdfs");
    let fixture = Fixture::named("medium");
    let file = options(&server)
        .len(fixture.len)
        .open(&format!("{}medium", server.url()))
        .unwrap();
    ranges_are_right(&file, &fixture);
}

#[test]
fn what_hdfs_does_not_have_or_does_not_give_is_told_with_its_reason() {
    let server = need::server("webhdfs");
    let open = |path: &str| options(&server).open(&format!("{}{path}", server.url()));
    let error = open("nothing").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(
        error.to_string().contains("FileNotFoundException"),
        "{error}"
    );
    let error = open("folder").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IsADirectory, "{error}");
    let error = options(&server)
        .hdfs_user("no name of anybody's")
        .open(&format!("{}medium", server.url()))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert!(error.to_string().contains("Exception: "), "{error}");
}

#[test]
fn the_data_node_is_found_where_the_caller_says_that_it_is() {
    let server = need::server("webhdfs");
    let fixture = Fixture::named("medium");
    let elsewhere = options(&server)
        .data_node("localhost", "nowhere.invalid")
        .max_attempts(1)
        .open(&format!("{}medium", server.url()))
        .unwrap();
    let error = elsewhere.read_at(&mut [0; 10], 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("nowhere.invalid"), "{error}");
    let here = options(&server)
        .data_node("localhost", server.fact("data"))
        .open(&format!("{}medium", server.url()))
        .unwrap();
    assert_same(&here.read_to_end(0).unwrap(), &fixture.bytes());
}
