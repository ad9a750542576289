//! Who is heard, who waits with an error, and what the errors say.
//!
//! What once broke, in KvikIO: one bad variable made every setting fail, and half of a set of settings stayed when one was bad.

use kvik_config::{ByteSize, CompatMode, Config, ConfigError, Key, Layer, Origin, ProxyUrl};

fn environment(variables: &[(&str, &str)]) -> Config {
    Config::resolve([Layer::from_vars(variables.iter().copied())])
        .expect("values of the environment wait")
}

#[test]
fn later_layers_win_and_every_value_knows_its_origin() {
    let config = Config::resolve([
        Layer::from_vars([
            ("KVIK_TASK_SIZE", "1MiB"),
            ("KVIKIO_NTHREADS", "3"),
            ("KVIK_GDS_THRESHOLD", "1"),
        ]),
        Layer::new().num_threads(4),
    ])
    .expect("all are values");
    let handle = config
        .for_handle(Layer::new().task_size(ByteSize::mib(2)))
        .expect("a value");
    let call = handle.with(Layer::new().num_threads(5)).expect("a value");

    assert_eq!(
        (config.num_threads(), config.origin(Key::NumThreads)),
        (Ok(4), Origin::Code)
    );
    assert_eq!(
        (config.task_size(), config.origin(Key::TaskSize)),
        (Ok(ByteSize::mib(1)), Origin::Environment("KVIK_TASK_SIZE"))
    );
    assert_eq!(
        (handle.task_size(), handle.origin(Key::TaskSize)),
        (Ok(ByteSize::mib(2)), Origin::Handle)
    );
    assert_eq!(
        (call.num_threads(), call.origin(Key::NumThreads)),
        (Ok(5), Origin::Call)
    );
    assert_eq!(
        (call.task_size(), call.origin(Key::TaskSize)),
        (Ok(ByteSize::mib(2)), Origin::Handle)
    );
    assert_eq!(
        (call.gds_threshold(), call.origin(Key::GdsThreshold)),
        (
            Ok(ByteSize::new(1)),
            Origin::Environment("KVIK_GDS_THRESHOLD")
        )
    );
    assert_eq!(
        (call.compat_mode(), call.origin(Key::CompatMode)),
        (Ok(CompatMode::Auto), Origin::Default)
    );
}

#[test]
fn our_variables_win_over_kvikios_even_with_a_bad_value() {
    let config = environment(&[
        ("KVIK_NUM_THREADS", "2"),
        ("KVIKIO_NTHREADS", "4"),
        ("KVIKIO_NUM_THREADS", "5"),
    ]);
    assert_eq!(
        (config.num_threads(), config.origin(Key::NumThreads)),
        (Ok(2), Origin::Environment("KVIK_NUM_THREADS"))
    );
    let config = environment(&[("KVIK_TASK_SIZE", "big"), ("KVIKIO_TASK_SIZE", "4")]);
    assert_eq!(
        config.task_size().expect_err("not a size").origin(),
        Origin::Environment("KVIK_TASK_SIZE")
    );
}

#[test]
fn aliases_of_one_family_must_agree() {
    let config = environment(&[("KVIKIO_NTHREADS", "4"), ("KVIKIO_NUM_THREADS", "4")]);
    assert_eq!(config.num_threads(), Ok(4));
    for family in ["KVIKIO", "KVIK"] {
        let variables = [
            (format!("{family}_NTHREADS"), "4"),
            (format!("{family}_NUM_THREADS"), "5"),
        ];
        let config =
            Config::resolve([Layer::from_vars(variables)]).expect("values of the environment wait");
        let error = config.num_threads().expect_err("they differ");
        assert_eq!(error.key(), Some(Key::NumThreads));
        for part in ["NTHREADS=\"4\"", "NUM_THREADS=\"5\""] {
            assert!(
                error.to_string().contains(&format!("{family}_{part}")),
                "{error}"
            );
        }
        assert_eq!(config.problems(), [error]);
        assert_eq!(config.task_size(), Ok(ByteSize::mib(4)));
    }
}

#[test]
fn a_bad_value_is_the_error_of_its_own_key_until_something_stronger_is_said() {
    let config = environment(&[("KVIK_TASK_SIZE", "4abc"), ("KVIK_NUM_THREADS", "2")]);
    let error = config.task_size().expect_err("not a size");
    assert_eq!(
        config.task_size(),
        Err(error.clone()),
        "the same error at every use"
    );
    assert_eq!(config.text(Key::TaskSize), Err(error));
    assert_eq!(
        config.origin(Key::TaskSize),
        Origin::Environment("KVIK_TASK_SIZE")
    );
    assert_eq!(config.num_threads(), Ok(2));
    let config = config
        .with(Layer::new().task_size(ByteSize::mib(1)))
        .expect("a value");
    assert_eq!(
        (config.task_size(), config.problems()),
        (Ok(ByteSize::mib(1)), vec![])
    );
}

#[test]
fn values_in_code_are_refused_at_once_even_where_a_later_layer_hides_them() {
    let bad = || Layer::new().num_threads(4).task_size(ByteSize::new(0));
    let check = |error: ConfigError, origin| {
        assert_eq!(
            (error.key(), error.text(), error.origin()),
            (Some(Key::TaskSize), Some("0 B"), origin)
        );
    };
    check(
        Config::resolve([bad()]).expect_err("0 is no size"),
        Origin::Code,
    );
    check(
        Config::resolve([bad(), Layer::new().task_size(ByteSize::mib(1))])
            .expect_err("0 is no size"),
        Origin::Code,
    );
    let config = Config::default();
    check(config.with(bad()).expect_err("0 is no size"), Origin::Call);
    check(
        config.for_handle(bad()).expect_err("0 is no size"),
        Origin::Handle,
    );
    check(
        Config::enter(bad()).expect_err("0 is no size"),
        Origin::Context,
    );
    check(
        Config::set_process(bad()).expect_err("0 is no size"),
        Origin::Process,
    );
    check(
        Config::suggest(bad()).expect_err("0 is no size"),
        Origin::Suggestion,
    );
    // Whole or not at all: the threads that were said with it were not heard either.
    let origin = Config::current().origin(Key::NumThreads);
    for refused in [Origin::Suggestion, Origin::Process, Origin::Context] {
        assert_ne!(origin, refused);
    }
}

#[test]
fn variables_that_are_no_settings_are_passed_over_unless_they_are_almost_one() {
    let config = environment(&[
        ("KVIK_TASKSIZE", "1"),
        ("KVIK_CONFIG", "/x"),
        ("KVIK_TEST_SIZE", "1"),
        ("KVIKIO_NTHREAD", "1"),
        ("PATH", "/bin"),
        ("NUM_THREADS", "x"),
    ]);
    let problems: Vec<_> = config.problems().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "environment KVIKIO_NTHREAD: no setting has this variable; did you mean KVIKIO_NTHREADS?",
            "environment KVIK_TASKSIZE: no setting has this variable; did you mean KVIK_TASK_SIZE?",
        ]
    );
    assert_eq!(config.task_size(), Ok(ByteSize::mib(4)));
}

#[test]
fn a_layer_tells_what_was_said() {
    let layer = Layer::new().task_size(ByteSize::mib(8));
    assert_eq!(layer.get(Key::TaskSize), Some("8 MiB".as_ref()));
    assert_eq!(layer.get(Key::NumThreads), None);
    assert!(!layer.is_empty() && Layer::new().is_empty());
}

#[test]
fn variables_of_other_programs_count_where_none_of_ours_is_set_and_they_are_not_empty() {
    for (variables, expected) in [
        (&[("CURL_CA_BUNDLE", "a"), ("SSL_CERT_FILE", "b")][..], "a"),
        (&[("CURL_CA_BUNDLE", ""), ("SSL_CERT_FILE", "b")], "b"),
        (&[("KVIK_CA_BUNDLE", "c"), ("CURL_CA_BUNDLE", "a")], "c"),
    ] {
        let layer = Layer::from_vars(variables.iter().copied());
        let config = Config::resolve([layer]).unwrap();
        assert_eq!(config.ca_bundle().unwrap(), Some(expected.into()));
        assert_eq!(config.problems(), []);
    }
}

#[test]
fn errors_say_what_is_wrong_where_and_what_would_be_right() {
    #[track_caller]
    fn check(variables: &[(&str, &str)], text: &str) {
        let config = environment(variables);
        assert_eq!(
            config
                .problems()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
            [text]
        );
    }
    check(
        &[("KVIKIO_TASK_SIZE", "4abc")],
        "setting task_size: \"4abc\" from environment KVIKIO_TASK_SIZE is not a size of at least 1 byte, such as 4194304, \
         4MiB or 64 KiB (K, M, G, T count in 1024s)",
    );
    check(
        &[("KVIK_NUM_THREADS", "many")],
        "setting num_threads: \"many\" from environment KVIK_NUM_THREADS is not a whole number from 1 to 1024 or `auto`",
    );
    check(
        &[("KVIKIO_HTTP_TIMEOUT", "0")],
        "setting http_timeout: \"0\" from environment KVIKIO_HTTP_TIMEOUT is not a number of seconds above 0, such as 60 or 0.5",
    );
    check(
        &[("KVIKIO_HTTP_STATUS_CODES", "500,")],
        "setting http_status_codes: \"500,\" from environment KVIKIO_HTTP_STATUS_CODES is not a list of whole numbers from \
         100 to 999 with commas between them, or `[]`",
    );
    check(
        &[("KVIKIO_NTHREADS", "4"), ("KVIKIO_NUM_THREADS", "5")],
        "setting num_threads: KVIKIO_NTHREADS=\"4\" and KVIKIO_NUM_THREADS=\"5\" in the environment mean the same setting \
         and differ; unset one",
    );
    check(
        &[("KVIKIO_AUTO_DIRECT_IO_READ", "y")],
        "setting auto_direct_io_read: \"y\" from environment KVIKIO_AUTO_DIRECT_IO_READ is not one of `on` `true` `yes` `1` \
         `off` `false` `no` `0`",
    );
    let error =
        Config::set_process(Layer::new().set(Key::CompatMode, "allow")).expect_err("not a mode");
    assert_eq!(
        error.to_string(),
        "setting compat_mode: \"allow\" from process is not one of `off` `false` `no` `0` `on` `true` `yes` `1` `auto`"
    );
}

#[test]
fn no_text_shows_the_password_of_a_proxy() {
    let url = "http://me:secret@proxy.example:3128";
    let twice = [
        ("KVIK_HTTPS_PROXY", url),
        ("http_proxy", url),
        ("no_proxy", "example.org"),
    ];
    let layers = [
        Layer::from_vars(twice),
        Layer::new().set(Key::AllProxy, url),
    ];
    let mut texts = vec![format!("{layers:?}")];
    let config = Config::resolve(layers).expect("all are values");
    for key in [Key::HttpProxy, Key::HttpsProxy, Key::AllProxy] {
        let text = config.text(key).expect("a URL");
        assert_eq!(text, "http://***@proxy.example:3128");
    }
    let used = config.https_proxy().expect("a URL").expect("one");
    assert_eq!(used.as_str(), url);
    texts.push(format!("{config:?} {used} {used:?}"));
    for text in texts {
        assert!(!text.contains("secret"), "{text}");
        assert!(text.contains("proxy.example:3128"), "{text}");
    }
}

#[test]
fn a_proxy_for_http_is_not_named_in_capitals() {
    let layer = Layer::from_vars([
        ("HTTP_PROXY", "http://evil"),
        ("HTTPS_PROXY", "http://proxy"),
    ]);
    let config = Config::resolve([layer]).expect("all are values");
    assert_eq!(config.http_proxy(), Ok(None));
    assert_eq!(
        config.https_proxy(),
        Ok(Some(ProxyUrl::new("http://proxy")))
    );
}
