//! The runtime that all share, for what nobody waits for or what may take its time. The child of a fork makes its own.

use std::future::Future;
use std::io;
use std::sync::mpsc;
use std::thread;

use kvik_core::corridor::PerProcess;
use kvik_core::{Error, ErrorKind, Op, Result};
use nix::errno::Errno;
use nix::sys::signal::SigSet;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// The runtime of this process, started at the first use.
///
/// # Errors
/// `TooManyOpenFiles` or `OutOfMemory` if the system gives no descriptors or threads for it.
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
        Ok(Runtime(Some(started.map_err(not_started)?)))
    }

    /// Starts `work`, which goes on by itself, whether or not somebody waits for it.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.handle().spawn(work)
    }

    /// Makes a call that may take its time, as no thread may that talks to the network.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.handle().spawn_blocking(call)
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

    fn handle(&self) -> &Handle {
        let runtime = self.0.as_ref().expect("only `drop` takes it");
        runtime.handle()
    }
}

/// Why there is no runtime, whoever drives it.
pub(super) fn not_started(cause: io::Error) -> Error {
    let kind = match cause.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EMFILE | Errno::ENFILE) => ErrorKind::TooManyOpenFiles,
        _ => ErrorKind::OutOfMemory,
    };
    let why = format!("no event loop for the network: {cause}");
    Error::new(kind, Op::Start, why).because(cause)
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // One that came second, perhaps on a thread of another runtime, which must not wait.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

// Reads do not come here. An opening is a request or two, of which a handshake of TLS is the work.
const MOST_THREADS: usize = 4;
// Names are looked up, files of settings read and functions of the caller's called by threads that may block. Such a function
// may open objects itself, and wait for what needs another of these threads; they are started as they are needed.
const MOST_BLOCKING: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_descriptors_is_told_as_such_and_not_as_one_of_memory() {
        for (errno, kind) in [
            (Errno::EMFILE, ErrorKind::TooManyOpenFiles),
            (Errno::ENFILE, ErrorKind::TooManyOpenFiles),
            (Errno::EAGAIN, ErrorKind::OutOfMemory),
        ] {
            let error = not_started(io::Error::from_raw_os_error(errno as i32));
            assert_eq!(error.kind(), kind);
            assert!(error.to_string().contains("no event loop"), "{error}");
        }
    }
}
