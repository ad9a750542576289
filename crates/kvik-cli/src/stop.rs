//! Stop: Ctrl-C and SIGTERM as a flag that long commands look at between pieces.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::Exit;
use crate::failure::{Failure, Result};

/// While it lives, the first signal raises the flag and the second one ends the process at once. No thread is started.
pub(crate) struct Stop {
    raised: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
    registered: Vec<SigId>,
}

impl Stop {
    pub(crate) fn listen() -> Result<Self> {
        let mut stop = Stop {
            raised: Arc::new(AtomicBool::new(false)),
            terminated: Arc::new(AtomicBool::new(false)),
            registered: Vec::new(),
        };
        stop.register()
            .map_err(|error| Failure::at("listen for", "SIGINT and SIGTERM", &error))?;
        Ok(stop)
    }

    /// Handlers of one signal run in this order, so a shutdown comes with the second signal only, and whoever sees
    /// `raised` also sees which signal it was.
    fn register(&mut self) -> std::io::Result<()> {
        for (signal, exit) in [(SIGINT, Exit::Interrupted), (SIGTERM, Exit::Terminated)] {
            let code = i32::from(exit.code());
            let last_word = signal_hook::flag::register_conditional_shutdown(
                signal,
                code,
                Arc::clone(&self.raised),
            )?;
            self.registered.push(last_word);
            if signal == SIGTERM {
                self.registered.push(signal_hook::flag::register(
                    signal,
                    Arc::clone(&self.terminated),
                )?);
            }
            self.registered.push(signal_hook::flag::register(
                signal,
                Arc::clone(&self.raised),
            )?);
        }
        Ok(())
    }

    /// The exit code to leave with, once somebody asked to stop.
    pub(crate) fn requested(&self) -> Option<Exit> {
        if !self.raised.load(Ordering::SeqCst) {
            return None;
        }
        Some(if self.terminated.load(Ordering::SeqCst) {
            Exit::Terminated
        } else {
            Exit::Interrupted
        })
    }

    /// The bare flag, for code that knows nothing of signals.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.raised
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
