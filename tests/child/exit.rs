//! Leaving the process while transfers are in flight, which crashed after `main` in other tools.

use std::sync::Mutex;

use kvik::{ByteSize, FileHandle, Pending, ReadOptions};

// What module globals of a larger program hold; nobody drops them.
static HANDLES: Mutex<Vec<FileHandle>> = Mutex::new(Vec::new());
static IN_FLIGHT: Mutex<Vec<Pending<Vec<u8>>>> = Mutex::new(Vec::new());

/// `exit HOW PATH`
pub(crate) fn run(args: &[String]) {
    let [how, path] = args else {
        panic!("two arguments")
    };
    let file = FileHandle::open(path).unwrap();
    HANDLES.lock().unwrap().push(file.clone());
    let start = |file: &FileHandle| {
        let options = ReadOptions::new()
            .num_threads(4)
            .task_size(ByteSize::kib(64));
        file.submit_read_with(vec![0; file.len().unwrap() as usize], 0, &options)
    };
    match how.as_str() {
        "main-returns" => IN_FLIGHT
            .lock()
            .unwrap()
            .extend((0..8).map(|_| start(&file))),
        "main-exits" => {
            IN_FLIGHT
                .lock()
                .unwrap()
                .extend((0..8).map(|_| start(&file)));
            std::process::exit(0);
        }
        "main-drops" => drop((0..8).map(|_| start(&file)).collect::<Vec<_>>()),
        "main-leaks" => (0..8).map(|_| start(&file)).for_each(std::mem::forget),
        "thread-reads" => detached(move || {
            loop {
                let _ = file.read_at(&mut vec![0; 8 << 20], 0);
            }
        }),
        "thread-submits" => detached(move || {
            loop {
                let pending: Vec<_> = (0..4).map(|_| start(&file)).collect();
                let _ = pending[3].wait();
            }
        }),
        "thread-exits" => {
            IN_FLIGHT
                .lock()
                .unwrap()
                .extend((0..8).map(|_| start(&file)));
            detached(|| std::process::exit(0));
            // Main is in a transfer of its own when the other thread ends the process.
            loop {
                let _ = file.read_at(&mut vec![0; 8 << 20], 0);
            }
        }
        other => panic!("no such way to leave: {other}"),
    }
}

/// Runs `work` on a thread that nobody waits for, once it has begun.
fn detached(work: impl FnOnce() + Send + 'static) {
    let (begun, wait) = std::sync::mpsc::channel();
    let run = move || {
        begun.send(()).unwrap();
        work();
    };
    std::thread::Builder::new().spawn(run).unwrap();
    wait.recv().unwrap();
}
