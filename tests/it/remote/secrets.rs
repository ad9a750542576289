//! What a caller gives to prove who he is stands in no text of ours: in no error and none of its causes, in nothing that is
//! logged or printed for a programmer, in no panic; not even where a server repeats all that it was sent.

use std::error::Error as _;
use std::fmt::{self, Write as _};
use std::panic;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use kvik::{Anonymous, Error, Keys, Location, RemoteHandle, RemoteOptions};
use kvik_tests::hostile::{Asked, Reply, Script, Server, Step};
use kvik_tests::pattern::pattern;
use kvik_tests::remote;
use tracing::field::{Field, Visit};
use tracing::span;

/// All of them, as they are, and in the forms in which they go out.
const SECRETS: &[&str] = &[
    // The user of a URL.
    "userone",
    "hunter/22",
    "hunter%2F22",
    "hunter%2f22",
    "dXNlcm9uZTpodW50ZXIvMjI",
    // A bearer token.
    "bearer-t0ken+/",
    "YmVhcmVyLXQwa2VuKy8",
    // A name and a password.
    "nameoftwo",
    "passw0rd:two",
    "bmFtZW9mdHdvOnBhc3N3MHJkOnR3bw",
    // Headers.
    "key-of-an-api",
    "sess10n",
    // Queries: of a presigned URL, and of WebHDFS.
    "s1gnature",
    "AKIAQUERY",
    "query+t0ken/=",
    "query%2Bt0ken%2F%3D",
    "delegat10n",
    // A token of a function's, and the user of a proxy.
    "given-t0ken+/",
    "proxyuser",
    "pr0xy/pass",
    "pr0xy%2Fpass",
    "cHJveHl1c2VyOnByMHh5L3Bhc3M",
    // Keys.
    "AKIASTORED",
    "s3cretkey/+",
    "session=t0ken/",
    "session%3Dt0ken%2F",
    // The user of another proxy, with the same password.
    "pr0xyuser",
    "cHIweHl1c2VyOnByMHh5L3Bhc3",
    // That of a URL to which a server sent us.
    "m0ved+sig",
    "m0ved%2Bsig",
    "m0ved%2bsig",
];

/// Everything that kvik logs and every panic.
static LOGGED: Mutex<String> = Mutex::new(String::new());

struct Log;

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("kvik")
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        attributes.record(&mut Line(&mut LOGGED.lock().unwrap()));
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut Line(&mut LOGGED.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut Line(&mut LOGGED.lock().unwrap()));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        writeln!(self.0, "{field}={value:?}").unwrap();
    }
}

/// From here on all that is logged is kept, and what panics say.
fn listen() {
    static LISTENING: OnceLock<()> = OnceLock::new();
    LISTENING.get_or_init(|| {
        tracing::subscriber::set_global_default(Log).unwrap();
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            writeln!(LOGGED.lock().unwrap(), "{info}").unwrap();
            usual(info);
        }));
    });
}

/// What a client sent, in all the forms in which a server may repeat it, in one line.
fn echo(asked: &Asked) -> String {
    let mut echo = format!("path {} ", asked.path);
    for (name, value) in &asked.headers {
        write!(echo, "{name}: {value} ").unwrap();
        for word in value.split([' ', ',', ';']) {
            write!(echo, "<{word}> ").unwrap();
        }
    }
    let decoded = kvik_tests::percent::decoded(&echo);
    echo.push_str(&String::from_utf8_lossy(&decoded));
    echo.replace(['\r', '\n'], " ")
}

/// As a text of XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// A refusal that repeats all of it, in body and headers.
fn refusal(status: u16, asked: &Asked) -> Reply {
    let echo = echo(asked);
    // Some of it in each of what is read: those are cut off after some hundred bytes.
    let part = |number: usize| {
        let words: Vec<_> = echo.split(' ').skip(number).step_by(7).collect();
        escaped(&words.join(" "))
    };
    let turn = asked.number % 7;
    let body = format!(
        "<Error><Code>{}</Code><Message>{}</Message><RequestId>{}</RequestId><Region>{}</Region></Error>",
        part(turn),
        part((turn + 1) % 7),
        part((turn + 2) % 7),
        part((turn + 3) % 7)
    );
    let body = match asked.path.starts_with("/webhdfs/") {
        true => serde_json::json!({"RemoteException": {"exception": part(turn), "message": echo}})
            .to_string(),
        false => body,
    };
    let header: String = echo.chars().filter(char::is_ascii).collect();
    Reply::with(status, body.as_bytes())
        .header("content-type", "application/xml")
        .header("etag", &format!("\"{header}\""))
        .header("server", &header)
        .header("x-amz-request-id", &header)
        .header("x-amz-bucket-region", &header)
}

/// What it sends in the place of an object.
type Play = fn(&Asked, &str) -> Script;

/// The ways of a server to be bad; the text is a URL of another one like it.
fn plays() -> [Play; 13] {
    [
        |asked, _| refusal(400, asked).script(),
        |asked, _| refusal(401, asked).script(),
        |asked, _| refusal(403, asked).script(),
        |asked, _| refusal(404, asked).script(),
        |asked, _| refusal(407, asked).script(),
        |asked, _| refusal(503, asked).script(),
        // The version is what was sent, and another one later.
        |asked, _| {
            let echo: String = echo(asked).chars().filter(char::is_ascii).collect();
            let tag = format!("\"{} {echo}\"", asked.number);
            Reply::of(&pattern(1, 0, 200_000), asked)
                .header("etag", &tag)
                .header("last-modified", &echo)
                .header("server", &echo)
                .script()
        },
        // Ranges that are none.
        |asked, _| {
            let echo: String = echo(asked).chars().filter(char::is_ascii).collect();
            Reply::of(&pattern(1, 0, 200_000), asked)
                .header("content-range", &echo)
                .script()
        },
        |asked, _| {
            let echo: String = echo(asked).chars().filter(char::is_ascii).collect();
            Reply::of(&pattern(1, 0, 200_000), asked)
                .header("content-encoding", &echo)
                .script()
        },
        // What is no answer, and none at all.
        |asked, _| Script(vec![Step::Send(echo(asked).into()), Step::Close]),
        |_, _| Script(vec![Step::Reset]),
        // Elsewhere, where it goes on like this.
        |asked, there| match asked.path.starts_with("/there") {
            true => refusal(403, asked).script(),
            false => {
                let to = format!("{there}/there?X-Sig=m0ved%2Bsig");
                Reply::redirect(307, &to).script()
            }
        },
        // To a host that is made of what was sent.
        |asked, _| {
            let host: String = echo(asked)
                .chars()
                .filter(char::is_ascii_alphanumeric)
                .take(60)
                .collect();
            let to = format!("http://{host}.invalid/a?{}", asked.path.len());
            Reply::redirect(302, &to).script()
        },
    ]
}

/// The ways to say who asks.
fn callers(server: &Server) -> Vec<(RemoteOptions, String)> {
    let quick = || {
        remote::quick()
            .connect_timeout(Duration::from_secs(1))
            .max_attempts(2)
    };
    let plain = server.url("dir/object");
    let with_user = plain.replace("http://", "http://userone:hunter%2F22@");
    let presigned = format!(
        "{plain}?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAQUERY%2F20260101%2Fr%2Fs3%2Faws4_request\
         &X-Amz-Security-Token=query%2Bt0ken%2F%3D&X-Amz-Signature=s1gnature"
    );
    let delegated = format!("{plain}?delegation=delegat10n");
    let keys = || Keys::new("AKIASTORED", "s3cretkey/+").token("session=t0ken/");
    let store = quick()
        .endpoint_url(&server.url(""))
        .region("eu-west-1")
        .keys(keys());
    vec![
        (quick(), with_user),
        (quick().bearer("bearer-t0ken+/"), plain.clone()),
        (
            quick().basic_auth("nameoftwo", "passw0rd:two"),
            plain.clone(),
        ),
        (
            quick()
                .header("X-Api-Key", "key-of-an-api")
                .header("Cookie", "id=sess10n; lang=de"),
            plain.clone(),
        ),
        (
            quick().bearer_from(|| Ok::<_, Error>("given-t0ken+/".to_owned())),
            plain.clone(),
        ),
        (
            quick().proxy(&format!(
                "http://proxyuser:pr0xy%2Fpass@{}",
                server.address()
            )),
            "http://server.invalid/dir/object".to_owned(),
        ),
        (quick(), presigned),
        (quick(), delegated),
        (
            quick()
                .delegation("delegat10n")
                .header("X-Api-Key", "key-of-an-api"),
            format!("webhdfs://{}/dir/object", server.address()),
        ),
        (store.clone(), "s3://bucket/dir/key".to_owned()),
        (
            store.anonymous(Anonymous::Always),
            "s3://bucket/dir/key".to_owned(),
        ),
    ]
}

/// All texts of an error and of what caused it.
fn texts_of(error: &Error) -> String {
    let mut texts = format!("{error} {error:?} {error:#?}");
    let mut next = error.source();
    while let Some(cause) = next {
        write!(texts, " {cause} {cause:?} {cause:#?}").unwrap();
        next = cause.source();
    }
    texts
}

/// Whatever is shown of a caller who opens and reads this.
fn shown(options: &RemoteOptions, url: &str) -> String {
    let mut shown = format!("{options:?} {options:#?}");
    let location = Location::parse(url).unwrap();
    write!(shown, " {location} {location:?}").unwrap();
    let diagnosis = options.diagnose(url);
    write!(shown, " {diagnosis:?} {diagnosis:#?}").unwrap();
    match options.open(url) {
        Err(error) => shown.push_str(&texts_of(&error)),
        Ok(object) => {
            let mut bytes = vec![0; 1000];
            let read = object.read_at(&mut bytes, 150_000);
            shown.push_str(&texts_of(&read.expect_err("another version")));
            let pending = object.submit_read(bytes, 160_000);
            write!(shown, " {object:?} {} {pending:?}", object.url()).unwrap();
            write!(shown, " {:?}", object.server()).unwrap();
            let validator = object.validator().unwrap();
            write!(shown, " {validator} {validator:?} {:?}", object.s3()).unwrap();
            let (outcome, _) = pending.finish();
            shown.push_str(&texts_of(&outcome.expect_err("another version")));
        }
    }
    shown
}

#[track_caller]
fn check(what: &str, text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{what}: {secret} is in: {text}");
    }
}

#[test]
fn no_secret_is_in_any_message_log_debug_print_or_panic() {
    listen();
    for (number, play) in plays().into_iter().enumerate() {
        let there = Server::start(move |asked| play(asked, ""));
        let elsewhere = format!("http://{}", there.address());
        let server = Server::start(move |asked| play(asked, &elsewhere));
        for (caller, (options, url)) in callers(&server).into_iter().enumerate() {
            let what = format!("play {number}, caller {caller}");
            check(&what, &shown(&options, &url));
            // One that nobody answers.
            let port = format!(":{}/", server.address().port());
            let gone = url.replace(&port, ":1/");
            let nobody = options.clone().endpoint_url("http://127.0.0.1:1/");
            let nobody = match url.contains("server.invalid") {
                true => nobody.proxy("http://proxyuser:pr0xy%2Fpass@127.0.0.1:1"),
                false => nobody,
            };
            let error = nobody.open(&gone).unwrap_err();
            check(&what, &texts_of(&error));
        }
        assert!(server.asked().len() >= 8, "play {number}");
    }
    let keys = Keys::new("AKIASTORED", "s3cretkey/+").token("session=t0ken/");
    check("keys", &format!("{keys:?} {keys}"));
    let logged = LOGGED.lock().unwrap().clone();
    assert!(logged.contains("a request is made again"), "{logged}");
    check("what is logged", &logged);
}

#[test]
fn no_text_shows_the_user_of_a_proxy_that_repeats_what_it_is_sent() {
    listen();
    for (number, play) in plays().into_iter().enumerate() {
        let proxy = Server::start(move |asked| play(asked, "http://elsewhere.invalid"));
        let url = proxy
            .url("")
            .replace("http://", "http://pr0xyuser:pr0xy%2Fpass@");
        let options = remote::quick().max_attempts(2).proxy(&url);
        let shown = shown(&options, "http://server.invalid/object");
        check(&format!("play {number}"), &shown);
        // It was told, all the same.
        assert!(proxy.asked()[0].header("proxy-authorization").is_some());
    }
    check("what is logged", &LOGGED.lock().unwrap().clone());
}

/// What is no secret is still told: a text without any words helps nobody.
#[test]
fn the_words_of_a_server_are_shown_without_the_secrets() {
    let server = Server::start(|asked| {
        let said = asked.header("authorization").unwrap();
        let body = format!("<Error><Code>Denied</Code><Message>not {said} here</Message></Error>");
        Reply::with(403, body.as_bytes())
            .header("content-type", "application/xml; charset=utf-8")
            .script()
    });
    let options = RemoteHandle::builder().bearer("bearer-t0ken+/");
    let error = options.open(&server.url("a")).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("403 Forbidden: Denied: not *** here"),
        "{text}"
    );
}
