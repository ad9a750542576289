//! The serialized forms (feature `serde`).

use kvik_config::{ByteSize, CompatMode, Config, Key, Layer, LogLevel, RemoteIoBackend};
use serde_json::{Value, json};

#[test]
fn sizes_are_numbers_and_are_read_from_numbers_and_texts() {
    assert_eq!(
        serde_json::to_value(ByteSize::mib(4)).ok(),
        Some(json!(4_194_304))
    );
    for text in ["4194304", "\"4MiB\"", "\"4194304\""] {
        assert_eq!(
            serde_json::from_str::<ByteSize>(text).ok(),
            Some(ByteSize::mib(4)),
            "{text}"
        );
    }
    for text in ["-1", "1.5", "\"4abc\"", "null"] {
        assert!(serde_json::from_str::<ByteSize>(text).is_err(), "{text}");
    }
}

#[test]
fn words_are_words() {
    assert_eq!(
        serde_json::to_value((CompatMode::Auto, RemoteIoBackend::MultiPoll)).ok(),
        Some(json!(["auto", "multi_poll"]))
    );
    assert_eq!(
        serde_json::from_str::<(CompatMode, LogLevel)>("[\"ON\", \"warn\"]").ok(),
        Some((CompatMode::On, LogLevel::Warn))
    );
    assert!(serde_json::from_str::<CompatMode>("\"allow\"").is_err());
}

#[test]
fn a_configuration_has_value_origin_and_error_of_every_key() {
    let config = Config::resolve([
        Layer::from_vars([("KVIK_TASK_SIZE", "4abc"), ("KVIKIO_HTTP_TIMEOUT", "0.5")]),
        Layer::new()
            .num_threads(2)
            .log_file(Some("/tmp/log".into())),
    ])
    .expect("all are values");
    let value = serde_json::to_value(&config).expect("a map");
    let names: Vec<_> = value.as_object().expect("a map").keys().cloned().collect();
    let mut expected: Vec<_> = Key::ALL.iter().map(|key| key.name()).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(
        value["num_threads"],
        json!({"value": 2, "origin": "code", "error": null})
    );
    assert_eq!(
        value["http_timeout"],
        json!({"value": 0.5, "origin": "environment KVIKIO_HTTP_TIMEOUT", "error": null})
    );
    assert_eq!(
        value["log_file"],
        json!({"value": "/tmp/log", "origin": "code", "error": null})
    );
    assert_eq!(
        value["webhdfs_username"],
        json!({"value": null, "origin": "default", "error": null})
    );
    assert_eq!(value["compat_mode"]["value"], json!("auto"));
    assert_eq!(
        value["http_status_codes"]["value"],
        json!([429, 500, 502, 503, 504])
    );
    assert_eq!(value["auto_direct_io_write"]["value"], json!(true));
    let error = config.task_size().expect_err("not a size").to_string();
    assert_eq!(
        value["task_size"],
        json!({"value": Value::Null, "origin": "environment KVIK_TASK_SIZE", "error": error})
    );
}
