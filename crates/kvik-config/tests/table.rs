//! The table of settings agrees with itself, with KvikIO's names, and with the page made from it.
//!
//! What once broke, elsewhere: a setting that was added to the documentation but not to the parser, and the other way round.

use std::collections::BTreeSet;

use kvik_config::{Config, Effect, Key, Layer, Origin, reference};

/// KvikIO 26.10's variables, as observed.
const KVIKIO: &[&str] = &[
    "KVIKIO_COMPAT_MODE",
    "KVIKIO_NTHREADS",
    "KVIKIO_NUM_THREADS",
    "KVIKIO_TASK_SIZE",
    "KVIKIO_GDS_THRESHOLD",
    "KVIKIO_BOUNCE_BUFFER_SIZE",
    "KVIKIO_HTTP_MAX_ATTEMPTS",
    "KVIKIO_HTTP_TIMEOUT",
    "KVIKIO_HTTP_STATUS_CODES",
    "KVIKIO_AUTO_DIRECT_IO_READ",
    "KVIKIO_AUTO_DIRECT_IO_WRITE",
    "KVIKIO_AUTO_DIRECT_IO_READ_OVERREAD",
    "KVIKIO_THREAD_POOL_PER_BLOCK_DEVICE",
    "KVIKIO_REMOTE_IO_BACKEND",
    "KVIKIO_REMOTE_IO_NUM_REACTORS",
    "KVIKIO_REMOTE_IO_REACTOR_DISPATCH",
    "KVIKIO_REMOTE_IO_MAX_CONCURRENT_REQUESTS",
    "KVIKIO_REMOTE_VERBOSE",
    "KVIKIO_WEBHDFS_USERNAME",
    "KVIKIO_LOG_LEVEL",
    "KVIKIO_LOG_FILE",
];

#[test]
fn every_variable_of_kvikio_is_read_and_has_a_twin_of_ours() {
    let variables: BTreeSet<&str> = Key::ALL
        .iter()
        .flat_map(|key| key.variables())
        .copied()
        .collect();
    for name in KVIKIO {
        assert!(variables.contains(name), "{name}");
        assert!(
            variables.contains(name.replace("KVIKIO_", "KVIK_").as_str()),
            "twin of {name}"
        );
    }
    let theirs = variables
        .iter()
        .filter(|name| name.starts_with("KVIKIO_"))
        .count();
    assert_eq!(theirs, KVIKIO.len());
}

#[test]
fn names_and_variables_are_unique_and_ours_come_first() {
    let names: BTreeSet<&str> = Key::ALL.iter().map(|key| key.name()).collect();
    assert_eq!(names.len(), Key::ALL.len());
    let variables: Vec<&str> = Key::ALL
        .iter()
        .flat_map(|key| key.variables())
        .copied()
        .collect();
    assert_eq!(
        variables.iter().collect::<BTreeSet<_>>().len(),
        variables.len()
    );
    for key in Key::ALL {
        assert_eq!(
            key.variables()[0],
            format!("KVIK_{}", key.name().to_uppercase())
        );
        assert!(
            key.variables()
                .is_sorted_by_key(|name| name.starts_with("KVIKIO_")),
            "{key}"
        );
        assert_eq!(Key::from_name(key.name()), Some(*key));
    }
    assert_eq!(Key::from_name("no such setting"), None);
}

#[test]
fn every_default_is_a_value_and_so_is_kvikios() {
    let defaults = Config::default();
    assert_eq!(defaults.problems(), []);
    for &key in Key::ALL {
        assert_eq!(defaults.origin(key), Origin::Default);
        assert_eq!(
            Config::resolve([Layer::new().set(key, key.default())]).map(|c| c.text(key)),
            Ok(defaults.text(key))
        );
        if let Some(kvikio) = key.kvikio_default() {
            Config::resolve([Layer::new().set(key, kvikio)]).expect("KvikIO's default is a value");
        }
    }
}

#[test]
fn the_text_of_every_value_is_a_spelling_of_it() {
    let changed = Layer::from_vars([
        ("KVIK_NUM_THREADS", "7"),
        ("KVIK_TASK_SIZE", "12345"),
        ("KVIK_HTTP_TIMEOUT", "0.25"),
        ("KVIK_HTTP_STATUS_CODES", "[]"),
        ("KVIK_LOG_FILE", "/a file"),
        ("KVIK_WEBHDFS_USERNAME", "ann"),
        ("KVIK_COMPAT_MODE", "YES"),
        ("KVIK_REMOTE_VERBOSE", "1"),
    ]);
    for config in [
        Config::default(),
        Config::resolve([changed]).expect("nothing from code"),
    ] {
        for &key in Key::ALL {
            let text = config.text(key).expect("all values are good");
            let again =
                Config::resolve([Layer::new().set(key, &text)]).expect("a text is a spelling");
            assert_eq!(again.text(key), Ok(text));
        }
    }
}

#[test]
fn threads_default_to_the_cores_this_process_may_use_but_not_more_than_16() {
    let cores = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(16);
    assert_eq!(Config::default().num_threads(), Ok(cores));
}

#[test]
fn every_sentence_is_one_or_more_sentences() {
    for key in Key::ALL {
        let sentence = key.sentence();
        assert!(
            sentence.ends_with('.') && sentence.starts_with(char::is_uppercase),
            "{key}: {sentence}"
        );
        assert!(
            !sentence.contains("  ") && !sentence.contains('\n'),
            "{key}: {sentence}"
        );
    }
}

#[test]
fn the_page_names_every_setting_variable_and_default() {
    let page = reference();
    for key in Key::ALL {
        assert!(
            page.contains(&format!("\n### {key}\n\n{}\n", key.sentence())),
            "{key}"
        );
        for variable in key.variables() {
            assert!(page.contains(&format!("`{variable}`")), "{variable}");
        }
    }
    assert!(
        page.contains("| [`num_threads`](#num_threads) | `auto` | `1` | threads | yes |\n"),
        "{page}"
    );
    assert!(
        page.contains(
            "| [`inline_size`](#inline_size) | `1 MiB` | no such setting | bytes | yes |\n"
        ),
        "{page}"
    );
    assert!(
        page.contains("- Value: a whole number from 1 to 1024 or `auto`\n"),
        "{page}"
    );
}

#[test]
fn the_page_says_which_settings_this_version_does_not_act_on() {
    let with = |effect| -> Vec<&str> {
        let keys = Key::ALL.iter().filter(|key| key.effect() == effect);
        keys.map(|key| key.name()).collect()
    };
    assert_eq!(
        with(Effect::Now),
        [
            "num_threads",
            "task_size",
            "inline_size",
            "compat_mode",
            "cuda_library",
            "cufile_library",
            "gds_threshold",
            "bounce_buffer_size",
            "auto_direct_io_read",
            "auto_direct_io_write",
            "auto_direct_io_read_overread",
            "direct_read",
            "direct_write",
            "thread_pool_per_block_device",
            "http_max_attempts",
            "http_timeout",
            "http_status_codes",
            "ca_bundle",
            "ca_directory",
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "no_proxy",
            "remote_io_max_concurrent_requests",
            "webhdfs_username",
        ]
    );
    assert_eq!(with(Effect::CommandOnly), ["log_level", "log_file"]);
    assert_eq!(
        with(Effect::Stored),
        [
            "remote_io_backend",
            "remote_io_num_reactors",
            "remote_io_reactor_dispatch",
        ]
    );
    let page = reference();
    for (effect, words) in [
        (Effect::Now, "yes"),
        (Effect::CommandOnly, "in the command"),
        (Effect::Planned, "planned"),
        (Effect::Stored, "stored only"),
    ] {
        for name in with(effect) {
            let row = page
                .lines()
                .find(|line| line.contains(&format!("(#{name})")));
            assert!(
                row.is_some_and(|row| row.ends_with(&format!("| {words} |"))),
                "{row:?}"
            );
            let (_, section) = page
                .split_once(&format!("\n### {name}\n"))
                .expect("a section");
            let section = section.split("\n### ").next().unwrap_or_default();
            assert!(
                section.contains(&format!("- Effect: {}\n", effect.meaning())),
                "{section}"
            );
        }
    }
}

#[test]
fn the_settings_file_on_the_page_is_a_settings_file() {
    let page = reference();
    let example = page
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .expect("an example");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.toml");
    std::fs::write(&path, example).expect("written");
    let config =
        Config::resolve([Layer::from_file(&path).expect("TOML")]).expect("nothing from code");
    assert_eq!(config.problems(), []);
    assert_eq!(config.num_threads(), Ok(8));
    assert_eq!(config.auto_direct_io_read(), Ok(true));
    assert_eq!(
        config.http_status_codes(),
        Ok(vec![429, 500, 502, 503, 504])
    );
}
