//! The proxy, before nginx.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use kvik::{ReadAtExt, RemoteHandle};
use kvik_tests::need;
use kvik_tests::pattern::assert_same;
use kvik_tests::server::Fixture;

use crate::plain::get;

#[test]
fn the_proxy_passes_requests_on_and_leaves_its_name() {
    let (proxy, server) = (need::server("proxy"), need::server("http"));
    let target = format!("{}medium", server.url());
    let reply = get(proxy.address(), &target, &["Range: bytes=7-99"]);
    assert_eq!(reply.status, 206);
    assert_same(&reply.body, &Fixture::named("medium").part(7..100));
    let via = reply.field("Via");
    assert!(via.contains("tinyproxy"), "{via}");
}

#[test]
fn objects_are_read_through_the_proxy_with_tls_and_without() {
    let proxy = need::server("proxy");
    let by_proxy = RemoteHandle::builder().proxy(&format!("http://{}", proxy.address()));
    let fixture = Fixture::named("medium");
    for name in ["http", "https"] {
        let server = need::server(name);
        let options = match name {
            "https" => by_proxy.clone().ca_bundle(server.fact("ca")),
            _ => by_proxy.clone(),
        };
        let url = server.url_of(&fixture);
        let object = options.open(&url).unwrap();
        assert_same(&object.read_to_end(0).unwrap(), &fixture.bytes());
    }
}

#[test]
fn the_proxy_connects_through_to_any_port() {
    let (proxy, server) = (need::server("proxy"), need::server("https"));
    let mut socket = TcpStream::connect(proxy.address()).unwrap();
    write!(socket, "CONNECT {} HTTP/1.1\r\n\r\n", server.address()).unwrap();
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line).unwrap();
    assert!(line.contains(" 200 "), "{line}");
}
