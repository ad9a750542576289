//! Spellings of every kind of setting, as the environment says them.
//!
//! What once broke, in KvikIO: `4MiB` was 4, `4abc` was 4, `on off` was on, and 4294967296 was no number.

use std::fmt::Debug;
use std::path::PathBuf;
use std::time::Duration;

use kvik_config::{
    ByteSize, CompatMode, Config, ConfigError, Key, Layer, LogLevel, RemoteIoBackend,
    RemoteReactorDispatch,
};
use proptest::prelude::*;

fn config(variable: &str, text: &str) -> Config {
    Config::resolve([Layer::from_vars([(variable, text)])]).expect("values of the environment wait")
}

#[track_caller]
fn good<T: Debug + PartialEq>(
    variable: &str,
    text: &str,
    get: fn(&Config) -> Result<T, ConfigError>,
    value: T,
) {
    assert_eq!(
        get(&config(variable, text)),
        Ok(value),
        "{variable}={text:?}"
    );
}

#[track_caller]
fn bad<T: Debug>(variable: &str, text: &str, get: fn(&Config) -> Result<T, ConfigError>) {
    let config = config(variable, text);
    let error = get(&config).expect_err(text);
    assert_eq!((error.name(), error.text()), (Some(variable), Some(text)));
    // The error of one key, and of that key only.
    assert_eq!(config.problems(), [error]);
}

#[test]
fn whole_numbers_are_read_as_a_whole() {
    for (text, value) in [
        ("1", 1),
        ("16", 16),
        (" 4 ", 4),
        ("\t4", 4),
        ("+4", 4),
        ("007", 7),
        ("1024", 1_024),
    ] {
        good("KVIKIO_NTHREADS", text, Config::num_threads, value);
    }
    // KvikIO reads all but the first four as a number.
    for text in [
        "",
        " ",
        "abc",
        "-1",
        "0",
        "4abc",
        "3.7",
        "4MiB",
        "0x10",
        "4 4",
        "1e3",
        "32769",
        "99999999999999999999",
    ] {
        bad("KVIKIO_NTHREADS", text, Config::num_threads);
    }
    let automatic = Config::default().num_threads().expect("a default");
    for text in ["auto", "AUTO", " Auto "] {
        good("KVIK_NUM_THREADS", text, Config::num_threads, automatic);
    }
    bad("KVIK_HTTP_MAX_ATTEMPTS", "auto", Config::http_max_attempts);
    bad("KVIK_HTTP_MAX_ATTEMPTS", "0", Config::http_max_attempts);
    good(
        "KVIKIO_REMOTE_IO_NUM_REACTORS",
        "2",
        Config::remote_io_num_reactors,
        2,
    );
    bad(
        "KVIKIO_REMOTE_IO_NUM_REACTORS",
        "0",
        Config::remote_io_num_reactors,
    );
    // 0 is no limit, and KvikIO reads this one in 64 bits.
    good(
        "KVIKIO_REMOTE_IO_MAX_CONCURRENT_REQUESTS",
        "0",
        Config::remote_io_max_concurrent_requests,
        0,
    );
    good(
        "KVIKIO_REMOTE_IO_MAX_CONCURRENT_REQUESTS",
        "4294967296",
        Config::remote_io_max_concurrent_requests,
        1 << 32,
    );
    bad(
        "KVIKIO_REMOTE_IO_MAX_CONCURRENT_REQUESTS",
        "-1",
        Config::remote_io_max_concurrent_requests,
    );
}

#[test]
fn sizes_take_units_and_may_be_larger_than_two_gibibytes() {
    good(
        "KVIKIO_TASK_SIZE",
        "4MiB",
        Config::task_size,
        ByteSize::mib(4),
    );
    good("KVIKIO_TASK_SIZE", "1", Config::task_size, ByteSize::new(1));
    good(
        "KVIKIO_TASK_SIZE",
        "2147483648",
        Config::task_size,
        ByteSize::gib(2),
    );
    good(
        "KVIKIO_TASK_SIZE",
        "4294967296",
        Config::task_size,
        ByteSize::gib(4),
    );
    for text in ["0", "0 MiB", "4abc", "-1", "", "4MB", "1.5MiB", "0x10"] {
        bad("KVIKIO_TASK_SIZE", text, Config::task_size);
        bad(
            "KVIKIO_BOUNCE_BUFFER_SIZE",
            text,
            Config::bounce_buffer_size,
        );
    }
    good(
        "KVIKIO_GDS_THRESHOLD",
        "0",
        Config::gds_threshold,
        ByteSize::new(0),
    );
    good(
        "KVIK_INLINE_SIZE",
        "0",
        Config::inline_size,
        ByteSize::new(0),
    );
}

#[test]
fn yes_and_no_are_kvikios_words_and_whole_numbers() {
    for text in [
        "on", "true", "yes", "1", "ON", "True", " yes ", "2", "-1", "+1", "010",
    ] {
        good(
            "KVIKIO_AUTO_DIRECT_IO_READ",
            text,
            Config::auto_direct_io_read,
            true,
        );
    }
    for text in [
        "off", "false", "no", "0", "OFF", "False", "\tno", "00", "-0",
    ] {
        good(
            "KVIKIO_AUTO_DIRECT_IO_WRITE",
            text,
            Config::auto_direct_io_write,
            false,
        );
    }
    // KvikIO takes `1abc`, `on off` and `0x1` by their beginning.
    for text in [
        "",
        "y",
        "n",
        "1abc",
        "on off",
        "0x1",
        "1.0",
        "99999999999999999999",
        "enabled",
    ] {
        bad(
            "KVIKIO_THREAD_POOL_PER_BLOCK_DEVICE",
            text,
            Config::thread_pool_per_block_device,
        );
    }
    good(
        "KVIKIO_AUTO_DIRECT_IO_READ_OVERREAD",
        "on",
        Config::auto_direct_io_read_overread,
        true,
    );
    good("KVIKIO_REMOTE_VERBOSE", "1", Config::remote_verbose, true);
}

#[test]
fn compat_modes_are_words_and_the_numbers_0_and_1() {
    for text in ["on", "ON", "true", "yes", "1", " On "] {
        good(
            "KVIKIO_COMPAT_MODE",
            text,
            Config::compat_mode,
            CompatMode::On,
        );
    }
    for text in ["off", "false", "NO", "0"] {
        good(
            "KVIKIO_COMPAT_MODE",
            text,
            Config::compat_mode,
            CompatMode::Off,
        );
    }
    for text in ["auto", "AUTO"] {
        good(
            "KVIKIO_COMPAT_MODE",
            text,
            Config::compat_mode,
            CompatMode::Auto,
        );
    }
    for text in ["", "2", "allow", "11", "*&^Yes", "on off"] {
        bad("KVIKIO_COMPAT_MODE", text, Config::compat_mode);
    }
}

#[test]
fn backends_have_no_short_names() {
    good(
        "KVIKIO_REMOTE_IO_BACKEND",
        "Easy_ThreadPool",
        Config::remote_io_backend,
        RemoteIoBackend::EasyThreadpool,
    );
    good(
        "KVIKIO_REMOTE_IO_BACKEND",
        "MULTI_POLL",
        Config::remote_io_backend,
        RemoteIoBackend::MultiPoll,
    );
    for text in ["easy", "multi", "multipoll", "", "0", "multi_poll x"] {
        bad("KVIKIO_REMOTE_IO_BACKEND", text, Config::remote_io_backend);
    }
    let dispatch = Config::remote_io_reactor_dispatch;
    good(
        "KVIKIO_REMOTE_IO_REACTOR_DISPATCH",
        "per_chunk",
        dispatch,
        RemoteReactorDispatch::PerChunk,
    );
    good(
        "KVIKIO_REMOTE_IO_REACTOR_DISPATCH",
        "PER_PREAD",
        dispatch,
        RemoteReactorDispatch::PerPread,
    );
    for text in ["round_robin", "chunk", ""] {
        bad("KVIKIO_REMOTE_IO_REACTOR_DISPATCH", text, dispatch);
    }
}

#[test]
fn status_codes_are_three_digits_between_single_commas() {
    let default = vec![429, 500, 502, 503, 504];
    for (text, codes) in [
        ("500", vec![500]),
        ("429,500", vec![429, 500]),
        (" 429 , 500 ", vec![429, 500]),
        ("[429, 500]", vec![429, 500]),
        ("100,999", vec![100, 999]),
        ("[]", vec![]),
        ("", default.clone()),
        ("  ", default),
    ] {
        good(
            "KVIKIO_HTTP_STATUS_CODES",
            text,
            Config::http_status_codes,
            codes,
        );
    }
    for text in [
        "5000", "99", "500,,503", "500,", "500, ", ",429", "500 503", "a,b", "[500", "500]", "5e2",
        "-500", ",",
    ] {
        bad("KVIKIO_HTTP_STATUS_CODES", text, Config::http_status_codes);
    }
}

#[test]
fn times_are_seconds() {
    for (text, time) in [
        ("60", Duration::from_secs(60)),
        ("0.5", Duration::from_millis(500)),
        ("3.7", Duration::from_millis(3700)),
        ("0.000000001", Duration::from_nanos(1)),
    ] {
        good("KVIKIO_HTTP_TIMEOUT", text, Config::http_timeout, time);
    }
    for text in [
        "",
        "0",
        "0.0",
        "-1",
        "60s",
        "1.",
        ".5",
        "1.0000000001",
        "1.-5",
        "1e3",
        "inf",
        "nan",
    ] {
        bad("KVIKIO_HTTP_TIMEOUT", text, Config::http_timeout);
    }
}

#[test]
fn log_levels_are_words_and_texts_are_taken_as_they_are() {
    good(
        "KVIKIO_LOG_LEVEL",
        "Debug",
        Config::log_level,
        LogLevel::Debug,
    );
    good(
        "KVIKIO_LOG_LEVEL",
        "critical",
        Config::log_level,
        LogLevel::Critical,
    );
    // KvikIO takes both for `off`.
    for text in ["", "verbose"] {
        bad("KVIKIO_LOG_LEVEL", text, Config::log_level);
    }
    good(
        "KVIKIO_LOG_FILE",
        "/tmp/a log ",
        Config::log_file,
        Some(PathBuf::from("/tmp/a log ")),
    );
    good("KVIKIO_LOG_FILE", "", Config::log_file, None);
    good(
        "KVIKIO_WEBHDFS_USERNAME",
        " ann",
        Config::webhdfs_username,
        Some(" ann".to_owned()),
    );
    good(
        "KVIKIO_WEBHDFS_USERNAME",
        "",
        Config::webhdfs_username,
        None,
    );
}

#[test]
fn what_is_not_utf_8_is_only_a_path() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let odd = || OsString::from_vec(b"/tmp/\xff".to_vec());
    let config = Config::resolve([Layer::from_vars([
        (OsString::from("KVIK_LOG_FILE"), odd()),
        ("KVIK_TASK_SIZE".into(), odd()),
        ("KVIK_WEBHDFS_USERNAME".into(), odd()),
    ])])
    .expect("values of the environment wait");
    assert_eq!(config.log_file(), Ok(Some(PathBuf::from(odd()))));
    let keys: Vec<_> = config.problems().iter().map(ConfigError::key).collect();
    assert_eq!(keys, [Some(Key::TaskSize), Some(Key::WebhdfsUsername)]);
}

proptest! {
    #[test]
    fn every_value_said_in_code_is_heard_as_it_is(
        threads in 1_usize..=1_024, size in 1_u64.., nanos in 1_u64.., codes in prop::collection::vec(100_u16..=999, 0..6),
        yes: bool, user in "\\PC+",
    ) {
        let config = Config::resolve([Layer::new()
            .num_threads(threads)
            .task_size(ByteSize::new(size))
            .http_timeout(Duration::from_nanos(nanos))
            .http_status_codes(codes.clone())
            .remote_verbose(yes)
            .webhdfs_username(Some(user.clone()))]).expect("all are values");
        prop_assert_eq!(config.num_threads(), Ok(threads));
        prop_assert_eq!(config.task_size(), Ok(ByteSize::new(size)));
        prop_assert_eq!(config.http_timeout(), Ok(Duration::from_nanos(nanos)));
        prop_assert_eq!(config.http_status_codes(), Ok(codes));
        prop_assert_eq!(config.remote_verbose(), Ok(yes));
        prop_assert_eq!(config.webhdfs_username(), Ok(Some(user)));
    }

    #[test]
    fn no_text_makes_a_setting_panic(text in "\\PC*") {
        for &key in Key::ALL {
            let _ = Config::resolve([Layer::new().set(key, &text)]);
        }
    }
}
