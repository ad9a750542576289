//! Settings at the start of a process, where other tools had settings without effect; and the promises about environment and
//! settings file.

use std::path::Path;
use std::sync::Barrier;

use kvik::config::{Key, Origin};
use kvik::{
    ByteSize, Config, EngineKind, EnginePreference, ErrorKind, FileHandle, Layer, ThreadPool,
};
use kvik_tests::os::set_variable;
use kvik_tests::pattern::{assert_same, pattern};

/// `settings-second-component FOLDER`, with `KVIKIO_NTHREADS=5` in the environment.
pub(crate) fn second_component(args: &[String]) {
    let path = Path::new(&args[0]).join("component");
    std::fs::write(&path, pattern(1, 0, 3_000_000)).unwrap();
    seen_as(5, Origin::Environment("KVIKIO_NTHREADS"));
    // The program speaks first.
    Config::set_process(Layer::new().num_threads(3)).unwrap();
    // A second component initialises the library with wishes of its own; the environment changes as well.
    Config::suggest(Layer::new().num_threads(64).task_size(ByteSize::mib(32))).unwrap();
    set_variable("KVIK_NUM_THREADS", "9");
    set_variable("KVIKIO_NTHREADS", "9");
    seen_as(3, Origin::Process);
    // Where nobody said anything, a suggestion counts.
    let config = Config::current();
    assert_eq!(config.task_size().unwrap(), ByteSize::mib(32));
    assert_eq!(config.origin(Key::TaskSize), Origin::Suggestion);

    let pool = ThreadPool::new("component");
    let file = FileHandle::options()
        .read(true)
        .thread_pool(&pool)
        .open(&path)
        .unwrap();
    let read = || {
        let mut target = vec![0; 3_000_000];
        file.read_exact_at(&mut target, 0).unwrap();
        assert_same(&target, &pattern(1, 0, 3_000_000));
    };
    Config::set_process(Layer::new().task_size(ByteSize::kib(10))).unwrap();
    read();
    // The calling thread is one of the three.
    assert_eq!(pool.threads(), 2);
    seen_as(3, Origin::Process);

    let both = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let outer = Config::enter(Layer::new().num_threads(4)).unwrap();
            both.wait();
            seen_as(4, Origin::Context);
            let inner = Config::enter(Layer::new().num_threads(7)).unwrap();
            seen_as(7, Origin::Context);
            both.wait();
            drop(outer);
            seen_as(7, Origin::Context);
            drop(inner);
            seen_as(3, Origin::Process);
        });
        scope.spawn(|| {
            let context = Config::enter(Layer::new().num_threads(2)).unwrap();
            both.wait();
            seen_as(2, Origin::Context);
            read();
            both.wait();
            seen_as(2, Origin::Context);
            drop(context);
            seen_as(3, Origin::Process);
        });
    });
    seen_as(3, Origin::Process);
    assert_eq!(
        pool.threads(),
        2,
        "the contexts of other threads reached a pool"
    );
}

/// `settings-late-environment`, with nothing in the environment.
pub(crate) fn late_environment() {
    set_variable("KVIK_NUM_THREADS", "6");
    // The environment is read at the first use, not before; after that, what changes there is for new processes.
    seen_as(6, Origin::Environment("KVIK_NUM_THREADS"));
    set_variable("KVIK_NUM_THREADS", "9");
    seen_as(6, Origin::Environment("KVIK_NUM_THREADS"));
    let asked_again = Config::resolve([Layer::from_env()]).unwrap();
    assert_eq!(asked_again.num_threads().unwrap(), 9);
}

/// `settings-bad-value FOLDER`, with `KVIK_TASK_SIZE=4abc` in the environment.
pub(crate) fn bad_value(args: &[String]) {
    let path = Path::new(&args[0]).join("bad");
    std::fs::write(&path, pattern(1, 0, 3_000_000)).unwrap();
    // Everything that needs no task size works: opening, small reads, calls that name one.
    let file = FileHandle::open(&path).unwrap();
    let mut target = vec![0; 3_000_000];
    file.read_exact_at(&mut target[..1000], 0).unwrap();
    let options = kvik::ReadOptions::new().task_size(ByteSize::mib(1));
    file.read_at_with(&mut target, 0, &options).unwrap();
    assert_same(&target, &pattern(1, 0, 3_000_000));

    let error = file.read_at(&mut target, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let text = error.to_string();
    assert!(
        text.contains("KVIK_TASK_SIZE") && text.contains("4abc"),
        "{text}"
    );
    let error = file.submit_read(target, 0).wait().unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (ErrorKind::Config, text));

    Config::set_process(Layer::new().task_size(ByteSize::mib(1))).unwrap();
    file.read_exact_at(&mut vec![0; 3_000_000], 0).unwrap();
}

/// `settings-bad-value-at-opening PATH VARIABLE`: a setting that opening needs fails it before the file is emptied.
pub(crate) fn bad_value_at_opening(args: &[String]) {
    let [path, variable] = args else {
        panic!("two arguments")
    };
    let error = FileHandle::create(path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains(variable), "{error}");
    assert_same(&std::fs::read(path).unwrap(), &pattern(1, 0, 100));
    // An engine that needs none of these settings opens the file all the same.
    let posix = EnginePreference::Only(EngineKind::Posix);
    if variable != "KVIK_THREAD_POOL_PER_BLOCK_DEVICE" {
        FileHandle::options()
            .read(true)
            .engine(posix)
            .open(path)
            .unwrap();
    }
}

/// `settings-seen KEY ...`: prints each with its origin.
pub(crate) fn seen(args: &[String]) {
    let config = Config::current();
    for name in args {
        let key = Key::from_name(name).unwrap();
        match config.text(key) {
            Ok(text) => println!("{name} = {text} ({})", config.origin(key)),
            Err(error) => println!("{name}: {error}"),
        }
    }
}

#[track_caller]
fn seen_as(threads: usize, origin: Origin) {
    let config = Config::current();
    assert_eq!(
        (
            config.num_threads().unwrap(),
            config.origin(Key::NumThreads)
        ),
        (threads, origin)
    );
}
