//! Bearer tokens that a function gives (object-store#539): a token ends while what was opened with it is read.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use kvik::{ByteSize, ErrorKind, ReadAtExt, RemoteOptions};
use kvik_tests::hostile::{Asked, Reply, Server};
use kvik_tests::pattern::{assert_same, pattern};
use kvik_tests::remote::quick;

const LEN: usize = 200_000;

/// A function that gives `token 1`, `token 2` and so on, and how often it was called.
fn numbered() -> (RemoteOptions, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let options = quick().bearer_from(move || {
        let call = counted.fetch_add(1, Ordering::Relaxed) + 1;
        Ok::<_, String>(format!("token-{call}"))
    });
    (options, calls)
}

/// Once they took all threads that look up names, and waited for a name.
#[test]
fn many_functions_at_once_open_objects_by_name_themselves() {
    const MANY: usize = 40;
    let server = Server::of(pattern(1, 0, LEN));
    let url = format!("http://localhost:{}/a", server.address().port());
    let all_there = Arc::new(Barrier::new(MANY));
    let opened = thread::scope(|scope| {
        let openers: Vec<_> = (0..MANY)
            .map(|_| {
                let (all_there, vault) = (Arc::clone(&all_there), url.clone());
                let options = quick().bearer_from(move || {
                    all_there.wait();
                    let patient = quick().timeout(Duration::from_secs(20));
                    let handle = patient.open(&vault)?;
                    Ok::<_, kvik::Error>(format!("token-{}", handle.len()))
                });
                let url = server.url("b");
                scope.spawn(move || options.open(&url).map(|handle| handle.len()))
            })
            .collect();
        openers
            .into_iter()
            .map(|opener| opener.join().unwrap())
            .collect::<Vec<_>>()
    });
    for len in opened {
        assert_eq!(len.unwrap(), LEN as u64);
    }
    let asked = server.asked();
    let with_token = asked.iter().filter(|asked| asked.path == "/b");
    for asked in with_token {
        let good = format!("Bearer token-{LEN}");
        assert_eq!(asked.header("authorization"), Some(good.as_str()));
    }
}

/// A server that takes this token only.
fn taking(token: Arc<AtomicUsize>) -> Server {
    let object = pattern(1, 0, LEN);
    Server::start(move |asked| {
        let good = format!("Bearer token-{}", token.load(Ordering::Relaxed));
        match asked.header("authorization") == Some(&good) {
            true => Reply::of(&object, asked).script(),
            false => Reply::status(401).script(),
        }
    })
}

#[test]
fn a_token_is_asked_for_once_and_again_when_a_server_refuses_it() {
    let good = Arc::new(AtomicUsize::new(1));
    let server = taking(Arc::clone(&good));
    let (options, calls) = numbered();
    let options = options.part_size(ByteSize::kib(16));
    assert_eq!(calls.load(Ordering::Relaxed), 0, "nothing was asked");
    let handle = options.open(&server.url("a")).unwrap();
    assert_same(&handle.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    // The token ends in the midst of many requests: all of them wait for the same next one.
    good.store(2, Ordering::Relaxed);
    assert_same(&handle.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    // What is opened by the same options has it, too.
    let before = server.asked().len();
    options.clone().open(&server.url("b")).unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert_eq!(server.asked().len(), before + 1);
}

#[test]
fn a_server_that_refuses_each_token_is_believed_after_the_second() {
    let server = taking(Arc::new(AtomicUsize::new(100)));
    let (options, calls) = numbered();
    let error = options.open(&server.url("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert_eq!(
        (calls.load(Ordering::Relaxed), server.asked().len()),
        (2, 2)
    );
    // One that is the same again is not sent again.
    let server = taking(Arc::new(AtomicUsize::new(100)));
    let same = quick().bearer_from(|| Ok::<_, String>("token-1".to_owned()));
    let error = same.open(&server.url("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_token_of_a_function_goes_to_its_own_origin_only() {
    let there = Server::of(pattern(1, 0, LEN));
    let to = there.url("object");
    let here = Server::start(move |_| Reply::redirect(302, &to).script());
    let (options, calls) = numbered();
    let handle = options.open(&here.url("a")).unwrap();
    assert_same(&handle.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
    let bears = |asked: &Asked| asked.header("authorization") == Some("Bearer token-1");
    assert!(here.asked().iter().all(bears));
    assert!(!there.asked().is_empty());
    assert!(
        there
            .asked()
            .iter()
            .all(|asked| asked.header("authorization").is_none())
    );
    // Another origin that wants a token gets none, and none is made for it.
    let refusing = Server::start(|_| Reply::status(401).script());
    let to = refusing.url("object");
    let here = Server::start(move |_| Reply::redirect(302, &to).script());
    let error = options.open(&here.url("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert_eq!(refusing.asked().len(), 1);
    assert_eq!(refusing.asked()[0].header("authorization"), None);
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

/// The place where it was is asked first, and refuses; then the server that knows the next place, which wants another token.
#[test]
fn a_token_that_ended_is_renewed_behind_a_place_that_ended_too() {
    let object = pattern(1, 0, LEN);
    let there = Server::start(move |asked| match asked.path.as_str() {
        "/1" if asked.number > 0 => Reply::status(401).script(),
        _ => Reply::of(&object, asked).script(),
    });
    let to = there.url("");
    let here = Server::start(move |asked| match asked.header("authorization") {
        Some("Bearer token-1") if asked.number == 0 => {
            Reply::redirect(307, &format!("{to}1")).script()
        }
        Some("Bearer token-2") => Reply::redirect(307, &format!("{to}2")).script(),
        _ => Reply::status(401).script(),
    });
    let (options, calls) = numbered();
    let handle = options.open(&here.url("a")).unwrap();
    let mut bytes = [0; 10];
    handle.read_exact_at(&mut bytes, 100_000).unwrap();
    assert_same(&bytes, &pattern(1, 100_000, 10));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    let paths = |server: &Server| -> Vec<String> {
        server.asked().into_iter().map(|asked| asked.path).collect()
    };
    assert_eq!(paths(&there), ["/1", "/1", "/2"]);
    assert_eq!(paths(&here), ["/a", "/a", "/a"]);
}

#[test]
fn a_function_that_fails_or_panics_ends_the_call_and_asks_no_server() {
    let server = Server::of(pattern(1, 0, LEN));
    for (options, kind, says) in [
        (
            quick().bearer_from(|| Err::<String, _>("the vault is locked")),
            ErrorKind::PermissionDenied,
            "the function that gives bearer tokens failed: the vault is locked",
        ),
        (
            quick().bearer_from(|| -> Result<String, String> { panic!("on purpose") }),
            ErrorKind::Internal,
            "the function that gives bearer tokens has panicked",
        ),
        (
            quick().bearer_from(|| Ok::<_, String>("two words".to_owned())),
            ErrorKind::Misuse,
            "the bearer token is empty, or has characters that no token has",
        ),
    ] {
        let error = options.open(&server.url("a")).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let url = server.url("a");
        let text = error.to_string();
        assert!(text.starts_with(&format!("open {url}: {says}")), "{text}");
    }
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn a_function_that_takes_too_long_is_not_waited_for() {
    let server = Server::of(pattern(1, 0, LEN));
    let (let_go, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let options = quick()
        .timeout(Duration::from_millis(100))
        .bearer_from(move || held.lock().unwrap().recv().map(|()| "late".to_owned()));
    let error = options.open(&server.url("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    let handle = options.len(LEN as u64).open(&server.url("a")).unwrap();
    let pending = handle.submit_read(vec![0; 10], 0);
    assert_eq!(pending.wait().unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(server.asked().len(), 0);
    drop(let_go);
}

/// A server that repeats what it was sent.
#[test]
fn a_token_of_a_function_is_never_shown() {
    let server = Server::start(|asked| {
        let sent = asked.header("authorization").unwrap_or_default();
        let body = format!("<Error><Code>No</Code><Message>not {sent}</Message></Error>");
        Reply::with(403, body.as_bytes())
            .header("content-type", "application/xml")
            .script()
    });
    let options = quick().bearer_from(|| Ok::<_, String>("hunter22".to_owned()));
    let error = options.open(&server.url("a")).unwrap_err();
    let text = format!("{options:?} {error} {error:?}");
    assert!(text.contains("No: not ***"), "{text}");
    assert!(!text.contains("hunter22"), "{text}");
}

#[test]
fn who_asks_is_said_by_the_last_word() {
    let server = Server::of(b"bytes".to_vec());
    let (options, calls) = numbered();
    let open = |options: RemoteOptions| {
        options.open(&server.url("a")).unwrap();
        let asked = server.asked();
        let sent = asked.last().unwrap().header("authorization");
        sent.map(str::to_owned)
    };
    assert_eq!(open(options.clone().bearer("mine")).unwrap(), "Bearer mine");
    assert_eq!(
        open(options.clone().basic_auth("u", "p")).unwrap(),
        "Basic dTpw"
    );
    let own = |options: RemoteOptions| options.header("Authorization", "Own x");
    assert_eq!(open(own(options.clone())).unwrap(), "Own x");
    assert_eq!(open(own(quick().bearer("mine"))).unwrap(), "Own x");
    assert_eq!(open(own(quick()).bearer("mine")).unwrap(), "Bearer mine");
    for asked in server.asked() {
        let said = asked
            .headers
            .iter()
            .filter(|(name, _)| name == "authorization");
        assert_eq!(said.count(), 1);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    let given =
        |options: RemoteOptions| options.bearer_from(|| Ok::<_, String>("given".to_owned()));
    assert_eq!(open(given(quick().bearer("mine"))).unwrap(), "Bearer given");
    // For S3, where keys say it, it is none.
    for url in [
        "s3://b/k",
        "https://b.s3.amazonaws.com/k?X-Amz-Signature=ab&X-Amz-Algorithm=AWS4-HMAC-SHA256",
    ] {
        let error = options.open(url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 0);
}
