//! Stop: Ctrl-C and SIGTERM as a flag that long commands look at between pieces, and an end where they cannot look.
//!
//! The first signal asks, and every other one within [`GRACE`] says the same again: `timeout` sends SIGTERM to the command
//! and then to its group. After that the process ends without being asked, since a read may wait for ever, as of
//! `/proc/kmsg`: by itself where nothing has to be tidied up, else at the next signal. It says so in either case.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::Exit;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// One for a run, to its last printed word. Once a command listens, SIGINT and SIGTERM do not end the process at once.
pub(crate) struct Stop {
    shared: Arc<Shared>,
    watch: Mutex<Option<Watch>>,
}

/// The thread that waits for signals, and what was registered besides.
struct Watch {
    handle: Handle,
    thread: JoinHandle<()>,
    registered: Vec<SigId>,
}

/// What happens to a command that is still at it when the grace is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// It ends: what it leaves behind is in nobody's way.
    Ends,
    /// It may go on tidying up until another signal comes.
    WaitsForAnotherSignal,
}

/// Says what it means that the command ends here and now.
type LastWords = Box<dyn Fn(Exit) -> Failure + Send>;

struct Shared {
    raised: AtomicBool,
    /// The last words are being printed; a signal now ends the process even if nobody reads them.
    ending: Arc<AtomicBool>,
    inner: Mutex<Inner>,
    output: Output,
}

struct Inner {
    asked: Option<Exit>,
    stage: Stage,
    patience: Patience,
    words: LastWords,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The last words hold.
    Working,
    /// The command does its last step, after which it no longer matters whether somebody asked.
    Settled,
    /// It prints how it went.
    Telling,
}

impl Stop {
    pub(crate) fn new(output: &Output) -> Self {
        Stop {
            shared: Arc::new(Shared {
                raised: AtomicBool::new(false),
                ending: Arc::new(AtomicBool::new(false)),
                inner: Mutex::new(Inner {
                    asked: None,
                    stage: Stage::Working,
                    patience: Patience::Ends,
                    words: Box::new(|exit| stopped("kvik", exit)),
                }),
                output: output.clone(),
            }),
            watch: Mutex::new(None),
        }
    }

    /// From here on signals are heard; `what` is the name of the command, for its last words.
    pub(crate) fn listen(&self, what: &'static str, patience: Patience) -> Result<()> {
        {
            let mut inner = self.shared.lock();
            inner.patience = patience;
            inner.words = Box::new(move |exit| stopped(what, exit));
        }
        let watch = self
            .start()
            .map_err(|error| Failure::at("listen for", "SIGINT and SIGTERM", &error))?;
        *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
        Ok(())
    }

    fn start(&self) -> io::Result<Watch> {
        let signals = Signals::new(SIGNALS.map(|(signal, _)| signal))?;
        let handle = signals.handle();
        let shared = Arc::clone(&self.shared);
        #[expect(
            clippy::disallowed_methods,
            reason = "it waits for signals, moves no bytes, and must run when every thread of the pool is stuck"
        )]
        let thread = thread::Builder::new()
            .name("kvik-signals".to_owned())
            .spawn(move || watch(signals, &shared))?;
        let mut watch = Watch {
            handle,
            thread,
            registered: Vec::new(),
        };
        for (signal, exit) in SIGNALS {
            let ending = Arc::clone(&self.shared.ending);
            let code = i32::from(exit.code());
            let id = signal_hook::flag::register_conditional_shutdown(signal, code, ending)?;
            watch.registered.push(id);
        }
        Ok(watch)
    }

    /// The exit code to leave with, once somebody asked to stop.
    pub(crate) fn requested(&self) -> Option<Exit> {
        if !self.shared.raised.load(Ordering::SeqCst) {
            return None;
        }
        self.shared.lock().asked
    }

    /// What to say if the process has to end while the command is at work.
    pub(crate) fn last_words(&self, words: impl Fn(Exit) -> Failure + Send + 'static) {
        self.shared.lock().words = Box::new(words);
    }

    /// From here on the command ends by its own doing, and its last words do not hold any more: either it was asked to stop
    /// before, which is returned, or it will not know.
    pub(crate) fn settle(&self) -> Option<Exit> {
        let mut inner = self.shared.lock();
        inner.stage = Stage::Settled;
        inner.asked
    }

    /// The command is done, and what is left to do is to say so.
    pub(crate) fn tell(&self) {
        self.shared.lock().stage = Stage::Telling;
    }

    /// The bare flag, for code that knows nothing of signals.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.shared.raised
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        let watch = self.watch.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(watch) = watch.take() {
            watch.handle.close();
            // If the thread is about to end the process, that is what happens here.
            let _ = watch.thread.join();
            for id in watch.registered {
                signal_hook::low_level::unregister(id);
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, exit: Exit) {
        // In this order: whoever sees the flag finds out which signal it was.
        self.lock().asked = Some(exit);
        self.raised.store(true, Ordering::SeqCst);
    }

    /// Ends the process with the last words, unless the command is past them and was not told `again`.
    fn end(&self, again: bool) {
        let inner = self.lock();
        let working = inner.stage == Stage::Working;
        let wanted = again || working && inner.patience == Patience::Ends;
        let Some(exit) = inner.asked.filter(|_| wanted) else {
            return;
        };
        self.ending.store(true, Ordering::SeqCst);
        if inner.stage != Stage::Telling {
            let failure = if working {
                (inner.words)(exit)
            } else {
                Failure::new(exit, "Interrupted", "stopped at the last step")
            };
            // A progress bar stands on the line.
            if io::stderr().is_terminal() {
                let _ = writeln!(io::stderr());
            }
            self.output.failure(&failure, None);
        }
        // The lock is held to the end, so that nobody acts against what was just said.
        signal_hook::low_level::exit(i32::from(exit.code()));
    }
}

/// The error of a command that was stopped.
pub(crate) fn stopped(what: &str, exit: Exit) -> Failure {
    let signal = match exit {
        Exit::Terminated => "SIGTERM",
        _ => "Ctrl-C (SIGINT)",
    };
    Failure::new(exit, "Interrupted", format!("{what}: stopped by {signal}"))
}

/// Sleeps until the first signal, then looks every now and then.
fn watch(mut signals: Signals, shared: &Shared) {
    let handle = signals.handle();
    let mut first: Option<Instant> = None;
    while !handle.is_closed() {
        let came: Vec<i32> = if first.is_none() {
            signals.wait().collect()
        } else {
            thread::sleep(TICK);
            signals.pending().collect()
        };
        for signal in came {
            match first {
                None => {
                    first = Some(Instant::now());
                    let known = SIGNALS.iter().find(|known| known.0 == signal);
                    shared.ask(known.map_or(Exit::Interrupted, |known| known.1));
                }
                Some(begun) if begun.elapsed() >= GRACE => shared.end(true),
                Some(_) => {}
            }
        }
        if first.is_some_and(|begun| begun.elapsed() >= GRACE) && !handle.is_closed() {
            shared.end(false);
        }
    }
}

const SIGNALS: [(i32, Exit); 2] = [(SIGINT, Exit::Interrupted), (SIGTERM, Exit::Terminated)];
// How long a command has to notice that it was asked; it looks twenty times a second.
const GRACE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(20);
