//! Proxies: who is asked by which, and what they refuse. Once a proxy for one host was asked for all, or what a proxy said was
//! taken for the server's answer.

use kvik::config::ProxyUrl;
use kvik::{Config, ErrorKind, Layer, ReadAtExt, RemoteOptions};
use kvik_tests::hostile::{Asked, Reply, Script, Server, Step};
use kvik_tests::pattern::{assert_same, pattern};
use kvik_tests::remote::{nobody, quick};
use kvik_tests::tls::{Authority, Certificate};

use crate::child;

const LEN: usize = 100_000;

fn object(asked: &Asked) -> Script {
    Reply::of(&pattern(1, 0, LEN), asked).script()
}

/// Its URL, with a name and a password.
fn proxy_url(proxy: &Server) -> String {
    format!("http://me:p%40ss@{}", proxy.address())
}

fn with(layer: Layer) -> RemoteOptions {
    quick().config(&Config::resolve([layer]).unwrap())
}

#[test]
fn a_proxy_is_asked_for_the_whole_url_and_is_told_who_asks() {
    let proxy = Server::start(object);
    let options = quick().proxy(&proxy_url(&proxy));
    // Nobody but the proxy knows this name.
    let handle = options.open("http://server.invalid/a?b").unwrap();
    assert_same(&handle.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
    for asked in proxy.asked() {
        assert_eq!(asked.path, "http://server.invalid/a?b");
        assert_eq!(asked.header("host"), Some("server.invalid"));
        let who = asked.header("proxy-authorization");
        assert_eq!(who, Some("Basic bWU6cEBzcw=="));
        assert!(asked.range().is_some());
    }
}

#[test]
fn a_proxy_by_tls_is_asked_for_what_needs_none_and_must_prove_itself() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let proxy = authority.serve(Certificate::Right, object);
    let address = format!("https://me:p%40ss@{}", proxy.address());
    let options = quick().max_attempts(1).proxy(&address);
    let trusting = options.clone().ca_bundle(authority.file(folder.path()));
    let handle = trusting.open("http://server.invalid/a?b").unwrap();
    assert_same(&handle.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
    for asked in proxy.asked() {
        assert_eq!(asked.path, "http://server.invalid/a?b");
        let who = asked.header("proxy-authorization");
        assert_eq!(who, Some("Basic bWU6cEBzcw=="));
    }
    let before = proxy.asked().len();
    let stranger = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let wary = options.ca_bundle(stranger.file(folder.path()));
    let error = wary.open("http://server.invalid/a?b").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Untrusted, "{error}");
    let says = format!(
        "the certificate of the proxy https://***@{} (from the caller) is refused",
        proxy.address()
    );
    assert!(error.to_string().contains(&says), "{error}");
    assert_eq!(proxy.asked().len(), before);
}

#[test]
fn the_environment_names_proxies_as_for_other_programs() {
    let proxy = Server::start(object);
    for (variable, url, is_asked) in [
        ("KVIK_HTTP_PROXY", "http://server.invalid/a", true),
        ("http_proxy", "http://server.invalid/a", true),
        ("HTTP_PROXY", "http://server.invalid/a", false),
        ("https_proxy", "http://server.invalid/a", false),
        ("all_proxy", "http://server.invalid/a", true),
        ("ALL_PROXY", "http://server.invalid/a", true),
    ] {
        let before = proxy.asked().len();
        let read = child("remote-tried").arg(url);
        let said = read.env(variable, proxy_url(&proxy)).succeeds();
        assert_eq!(
            said.contains("100000 bytes"),
            is_asked,
            "{variable}: {said}"
        );
        assert_eq!(proxy.asked().len() > before, is_asked, "{variable}");
        assert!(!said.contains("p%40ss"), "{variable}: {said}");
    }
}

#[test]
fn who_is_asked_without_a_proxy_is_decided_for_each_host_on_the_way() {
    let proxy = Server::start(|asked| match asked.path.as_str() {
        "http://near.invalid/a" => panic!("asked for what has no proxy"),
        "http://first.invalid/a" => Reply::redirect(302, "http://second.invalid/b").script(),
        "http://first.invalid/out" => Reply::redirect(302, "http://near.invalid/a").script(),
        _ => object(asked),
    });
    let settings = Layer::new()
        .http_proxy(Some(ProxyUrl::new(proxy_url(&proxy))))
        .no_proxy(Some("near.invalid, 10.0.0.0/8".to_owned()));
    let options = with(settings.clone()).max_attempts(1);
    let handle = options.open("http://first.invalid/a").unwrap();
    assert_eq!(handle.len(), LEN as u64);
    let paths: Vec<_> = proxy.asked().into_iter().map(|asked| asked.path).collect();
    assert_eq!(paths, ["http://first.invalid/a", "http://second.invalid/b"]);
    // The second hop is no business of the proxy's, and this machine knows no such name.
    let error = options.open("http://first.invalid/out").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert_eq!(proxy.asked().len(), 3);

    // This machine is asked without one, unless the caller says so.
    let server = Server::start(object);
    options.open(&server.url("a")).unwrap();
    assert_eq!((proxy.asked().len(), server.asked().len()), (3, 1));
    let forced = options.clone().proxy(&proxy_url(&proxy));
    forced.open(&server.url("a")).unwrap();
    assert_eq!((proxy.asked().len(), server.asked().len()), (4, 1));
    let none = with(settings).proxy("none").max_attempts(1);
    none.open("http://first.invalid/a").unwrap_err();
    assert_eq!(proxy.asked().len(), 4);
}

#[test]
fn what_a_proxy_refuses_is_told_as_its_refusal_and_without_its_password() {
    let refusing = |status| Server::start(move |_| Reply::status(status).script());
    let (strict, broken) = (refusing(407), refusing(502));
    let silent = Server::start(|_| Script(vec![Step::Close]));
    let nobody = format!("http://me:p%40ss@{}", nobody());
    let password = "asks for a name and a password";
    for (proxy, url, kind, says) in [
        (
            proxy_url(&strict),
            "http://server.invalid/a",
            ErrorKind::PermissionDenied,
            password,
        ),
        (
            proxy_url(&strict),
            "https://server.invalid/a",
            ErrorKind::PermissionDenied,
            password,
        ),
        (
            proxy_url(&broken),
            "https://server.invalid/a",
            ErrorKind::Unreachable,
            "(from the caller) refuses to connect us to the server",
        ),
        (
            proxy_url(&silent),
            "https://server.invalid/a",
            ErrorKind::Unreachable,
            "no connection by the proxy",
        ),
        (
            nobody.clone(),
            "http://server.invalid/a",
            ErrorKind::Unreachable,
            "no connection by the proxy",
        ),
        (
            nobody,
            "https://server.invalid/a",
            ErrorKind::Unreachable,
            "no connection by the proxy",
        ),
        (
            "socks5://me:p%40ss@127.0.0.1:1".to_owned(),
            "http://server.invalid/a",
            ErrorKind::Unsupported,
            "proxies of SOCKS",
        ),
        (
            "http://me:p%40ss@:x:".to_owned(),
            "http://server.invalid/a",
            ErrorKind::Misuse,
            "that is no URL",
        ),
    ] {
        let options = quick().proxy(&proxy).max_attempts(2);
        let error = options.open(url).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert!(error.to_string().contains("(from the caller)"), "{error}");
        let texts = format!("{error} {error:?} {options:?}");
        assert!(
            !texts.contains("p%40ss") && !texts.contains("p@ss"),
            "{texts}"
        );
    }
    // Who is not let in is not let in the next time either; a gateway in trouble may be out of it.
    assert_eq!((strict.asked().len(), broken.asked().len()), (2, 2));
    let connect = &broken.asked()[0];
    assert_eq!(connect.path, "server.invalid:443");
    assert!(connect.header("proxy-authorization").is_some());
}
