//! What holds for the process and for a thread.
//!
//! What once broke, in KvikIO, as reported in public (rapidsai/kvikio#451, rapidsai/cudf#23786 and #23683): settings had no
//! effect, or a component that was loaded later reset what the program had set. Its contexts are global.
//!
//! The tests of this file share a process under `cargo test`, so each uses settings of its own.

#![expect(clippy::disallowed_methods, reason = "tests of several threads")]

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use kvik_config::{ByteSize, CompatMode, Config, Key, Layer, Origin};

#[test]
fn the_programs_choice_stays_whatever_a_component_would_like() {
    Config::set_process(Layer::new().num_threads(3)).expect("a value");
    // A component that initialises the library with other wishes, and one more.
    Config::suggest(Layer::new().num_threads(64).http_max_attempts(5)).expect("values");
    Config::suggest(Layer::new().http_max_attempts(7)).expect("a value");

    let config = Config::current();
    assert_eq!(
        (config.num_threads(), config.origin(Key::NumThreads)),
        (Ok(3), Origin::Process)
    );
    assert_eq!(
        (
            config.http_max_attempts(),
            config.origin(Key::HttpMaxAttempts)
        ),
        (Ok(5), Origin::Suggestion)
    );
    // On every other thread as well.
    let elsewhere = thread::scope(|scope| {
        let thread = scope.spawn(|| Config::current().num_threads());
        thread.join().expect("the thread ends well")
    });
    assert_eq!(elsewhere, Ok(3));
    // The program may change its mind.
    Config::set_process(Layer::new().num_threads(4)).expect("a value");
    assert_eq!(Config::current().num_threads(), Ok(4));
    // What was resolved before stays as it was.
    assert_eq!(config.num_threads(), Ok(3));
}

#[test]
fn contexts_nest_and_do_not_leak_across_threads() {
    let before = Config::current().task_size();
    let together = Barrier::new(2);
    thread::scope(|scope| {
        for n in [1, 2] {
            let (together, before) = (&together, &before);
            scope.spawn(move || {
                let outer = Config::enter(
                    Layer::new()
                        .task_size(ByteSize::mib(10 * n))
                        .gds_threshold(ByteSize::new(n)),
                );
                let outer = outer.expect("values");
                together.wait();
                assert_eq!(Config::current().task_size(), Ok(ByteSize::mib(10 * n)));
                let inner = Config::enter(Layer::new().task_size(ByteSize::mib(10 * n + 1)))
                    .expect("a value");
                together.wait();
                let config = Config::current();
                assert_eq!(
                    (config.task_size(), config.origin(Key::TaskSize)),
                    (Ok(ByteSize::mib(10 * n + 1)), Origin::Context)
                );
                assert_eq!(
                    config.gds_threshold(),
                    Ok(ByteSize::new(n)),
                    "what the inner one does not say stays"
                );
                together.wait();
                drop(inner);
                assert_eq!(Config::current().task_size(), Ok(ByteSize::mib(10 * n)));
                drop(outer);
                assert_eq!(&Config::current().task_size(), before);
                together.wait();
            });
        }
    });
    assert_eq!(Config::current().task_size(), before);
}

#[test]
fn contexts_may_end_in_any_order() {
    let before = Config::current().bounce_buffer_size();
    let first = Config::enter(Layer::new().bounce_buffer_size(ByteSize::mib(1))).expect("a value");
    let second = Config::enter(Layer::new().bounce_buffer_size(ByteSize::mib(2))).expect("a value");
    drop(first);
    assert_eq!(Config::current().bounce_buffer_size(), Ok(ByteSize::mib(2)));
    drop(second);
    assert_eq!(Config::current().bounce_buffer_size(), before);
}

#[test]
fn a_context_is_stronger_than_the_process_also_when_that_changes_meanwhile() {
    let context = Config::enter(Layer::new().compat_mode(CompatMode::On)).expect("a value");
    Config::set_process(
        Layer::new()
            .compat_mode(CompatMode::Off)
            .http_timeout(Duration::from_secs(5)),
    )
    .expect("values");
    assert_eq!(Config::current().compat_mode(), Ok(CompatMode::On));
    assert_eq!(Config::current().http_timeout(), Ok(Duration::from_secs(5)));
    drop(context);
    assert_eq!(Config::current().compat_mode(), Ok(CompatMode::Off));
}

#[test]
fn nothing_of_a_refused_layer_takes_effect() {
    let before = Config::current();
    let refused = Layer::new()
        .remote_io_num_reactors(9)
        .set(Key::LogLevel, "loud");
    Config::set_process(refused.clone()).expect_err("no such level");
    Config::suggest(refused.clone()).expect_err("no such level");
    Config::enter(refused).expect_err("no such level");
    let after = Config::current();
    assert_eq!(
        after.remote_io_num_reactors(),
        before.remote_io_num_reactors()
    );
    assert_eq!(after.origin(Key::LogLevel), before.origin(Key::LogLevel));
}

#[test]
fn no_setting_is_lost_when_many_threads_set() {
    let layers = [
        Layer::new().auto_direct_io_read(true),
        Layer::new().auto_direct_io_write(false),
        Layer::new().auto_direct_io_read_overread(true),
        Layer::new().thread_pool_per_block_device(true),
        Layer::new().remote_verbose(true),
        Layer::new().webhdfs_username(Some("ann".to_owned())),
    ];
    thread::scope(|scope| {
        for layer in &layers {
            scope.spawn(move || {
                for _ in 0..100 {
                    Config::set_process(layer.clone()).expect("a value");
                    let _ = Config::current();
                }
            });
        }
    });
    let config = Config::current();
    assert_eq!(config.auto_direct_io_read(), Ok(true));
    assert_eq!(config.auto_direct_io_write(), Ok(false));
    assert_eq!(config.auto_direct_io_read_overread(), Ok(true));
    assert_eq!(config.thread_pool_per_block_device(), Ok(true));
    assert_eq!(config.remote_verbose(), Ok(true));
    assert_eq!(config.webhdfs_username(), Ok(Some("ann".to_owned())));
}

#[test]
fn settings_can_be_asked_for_while_a_thread_ends() {
    struct AsksAtTheEnd(std::sync::mpsc::Sender<bool>);
    impl Drop for AsksAtTheEnd {
        fn drop(&mut self) {
            let context = Config::enter(Layer::new().inline_size(ByteSize::new(1)));
            let _ = self
                .0
                .send(Config::current().inline_size().is_ok() && context.is_ok());
        }
    }
    thread_local!(static LATE: std::cell::RefCell<Option<AsksAtTheEnd>> = const { std::cell::RefCell::new(None) });
    let (sender, answers) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            LATE.set(Some(AsksAtTheEnd(sender)));
            // After `LATE`, so that it is gone before it.
            let _ = Config::current();
        });
    });
    assert_eq!(answers.recv(), Ok(true));
}
