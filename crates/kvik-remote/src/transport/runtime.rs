//! The one runtime of tokio's: the threads that talk to the network. The child of a fork makes its own.

use std::future::Future;
use std::sync::mpsc;
use std::thread;

use kvik_core::corridor::PerProcess;
use kvik_core::{Error, ErrorKind, Op, Result};
use nix::sys::signal::SigSet;
use tokio::task::{AbortHandle, JoinHandle};

/// The runtime of this process, started at the first use.
///
/// # Errors
/// `OutOfMemory` if the system starts no threads.
pub(crate) fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: PerProcess<Runtime> = PerProcess::new();
    RUNTIME.get_or_make(Runtime::start)
}

/// Threads that talk to the network.
pub(crate) struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    fn start() -> Result<Runtime> {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        let started = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cores.min(MOST_THREADS))
            .max_blocking_threads(MOST_BLOCKING)
            .thread_name("kvik-net")
            // Signals are the program's: none of them is to be handled on one of these threads.
            .on_thread_start(|| {
                // A thread that must take signals as they come works all the same.
                let _ = SigSet::all().thread_block();
            })
            .enable_all()
            .build();
        let started = started.map_err(|cause| {
            let why = format!("no threads for the network: {cause}");
            Error::new(ErrorKind::OutOfMemory, Op::Start, why).because(cause)
        })?;
        Ok(Runtime(Some(started)))
    }

    /// Starts `work`, which goes on by itself.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.handle(work).abort_handle()
    }

    /// Runs `work` and waits for it, on a thread of whatever kind: not even one of another runtime is blocked in a way that
    /// it minds.
    ///
    /// # Errors
    /// `Internal` if the work panicked.
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let (told, heard) = mpsc::sync_channel(1);
        self.spawn(async move {
            // Who waits for it is there.
            let _ = told.send(work.await);
        });
        heard.recv().map_err(|_| {
            let why = "what talks to the network has panicked";
            Error::new(ErrorKind::Internal, Op::Open, why)
        })
    }

    fn handle(&self, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        let runtime = self.0.as_ref().expect("only `drop` takes it");
        runtime.spawn(work)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // One that came second, perhaps on a thread of another runtime, which must not wait.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

// Moving bytes between sockets and windows is little work for each; TLS is more, a core for each gigabyte per second or so.
const MOST_THREADS: usize = 8;
// Names are looked up, files of settings read and functions of the caller's called by threads that may block. Such a function
// may open objects itself, and wait for what needs another of these threads; they are started as they are needed.
const MOST_BLOCKING: usize = 512;
