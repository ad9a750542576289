//! cuFile's driver: opened, counted and closed here and nowhere else.
//!
//! Opening it takes up to seconds, and has been seen never to return. So a thread of its own does it, for which everybody waits
//! with an end. In which mode the driver is open decides what registers: without its compatible mode, only a file with a
//! direct path does. The mode can be chosen before it is opened alone; who needs the other one gets it by closing and opening
//! again, as long as nothing is registered.

use std::ptr;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kvik_sys::CuFile;

use super::library;
use super::opening::{Done, Opening, Settings, is_old};
use super::refusal::Refusal;
use crate::device;
use crate::error::{Error, ErrorKind, Op, Result};
use crate::pool::{shared_value, start_aside};
use crate::sync::{Condvar, Mutex, MutexGuard, lock};

/// How the driver is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Where no direct path leads, it may copy through memory of the host, as far as its own settings let it.
    Compatible,
    /// It does nothing but by a direct path.
    Direct,
}

/// Which mode somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Whichever it is open in.
    Any,
    /// This one.
    Only(Mode),
    /// This one where it can be had, else whichever it is open in.
    Rather(Mode),
}

/// The driver while somebody needs it open.
#[derive(Debug)]
pub(crate) struct Use {
    cufile: CuFile,
    mode: Mode,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    cufile: Option<CuFile>,
    phase: Phase,
    /// How often the program has opened it and not closed it.
    opened: usize,
    /// How many `Use`s there are.
    uses: usize,
    /// Whether kvik opened it for its own needs, and keeps it open for the next one.
    kept: bool,
    /// What the program set, which a driver that is opened anew is told again.
    settings: Settings,
    /// What cuFile was last told about its compatible mode.
    compatible: Option<bool>,
    /// Why it cannot be opened without that.
    not_direct: Option<Refusal>,
    /// The number of the last change, and why it failed if it did.
    change: u64,
    refused: Option<Refusal>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Closed,
    Open(Mode),
    /// A thread is at it, for which nobody waits beyond this moment.
    Changing(Change, Instant),
    /// It did not come back in time.
    Lost(Change),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Opening,
    Closing,
}

type Guard = MutexGuard<'static, State>;

/// The driver in the mode that is wanted, opened where it is not, for as long as the answer lives. Where something is registered
/// in the mode `Direct`, that is what somebody who wants the other one gets: it is no worse for files with a direct path.
///
/// # Errors
/// The library cannot be loaded, the driver does not open or not in time, or it is in use in the mode `Compatible` while the
/// other one is wanted. Forked, in a child of the process that uses devices.
pub(crate) fn acquire(wanted: Wanted) -> Result<Use, Refusal> {
    let mut state = opened(wanted)?;
    state.kept = true;
    state.uses += 1;
    taken(&state)
}

/// Counts an opening by the program.
///
/// # Errors
/// As for [`acquire`].
pub(crate) fn open() -> Result<(), Refusal> {
    opened(Wanted::Any)?.opened += 1;
    Ok(())
}

/// Ends an opening by the program. The last one closes the driver, at once or when nothing is registered any more.
///
/// # Errors
/// `Misuse` if the program has it not open; `GdsUnavailable` if closing fails or does not end; `Forked` in a child of the
/// process that uses devices.
pub(crate) fn close() -> Result<()> {
    device::check_process()?;
    let state = device::is_started().then(|| lock(&shared().state));
    let Some(mut state) = state.filter(|state| state.opened > 0) else {
        let why = "cuFile's driver was not opened, or closed as often as it was opened";
        return Err(Error::new(ErrorKind::Misuse, Op::Inspect, why));
    };
    state.opened -= 1;
    if state.opened > 0 {
        return Ok(());
    }
    state.kept = false;
    let closed = at_rest(state)
        .and_then(close_if_unused)
        .and_then(|(state, change)| at_rest(state)?.outcome_of(change));
    closed.map_err(|refusal| refusal.of_driver(Op::Inspect))
}

/// Whether the driver is open: who registers something then does not have to open it.
pub(super) fn is_open() -> bool {
    device::is_started() && matches!(lock(&shared().state).phase, Phase::Open(_))
}

/// Has the program set something in the open driver, and write down what that is. One at a time: some of cuFile's settings are set
/// together, and each keeps the other as it is.
///
/// # Errors
/// As for [`acquire`], and what `set` answers.
pub(crate) fn set(set: impl FnOnce(&CuFile, &mut Settings) -> Result<()>) -> Result<()> {
    let driver = acquire(Wanted::Any).map_err(|refusal| refusal.of_driver(Op::Configure))?;
    let mut state = lock(&shared().state);
    set(driver.cufile(), &mut state.settings)
}

/// Waits for a driver in the mode that is wanted.
fn opened(wanted: Wanted) -> Result<Guard, Refusal> {
    if let Wanted::Rather(mode) = wanted {
        return match opened(Wanted::Only(mode)) {
            Err(_) if is_open() => opened(Wanted::Any),
            outcome => outcome,
        };
    }
    // Before anything of cuFile's: without CUDA's driver, opening its own never returns. And a child never comes any further, so
    // that nobody waits for a thread that it does not have.
    device::start().map_err(|error| match error.kind() {
        ErrorKind::Forked => Refusal::of(error).passing(),
        _ => Refusal::new(format!("not usable: {error}")).because(error),
    })?;
    let mut state = lock(&shared().state);
    loop {
        state = at_rest(state)?;
        let mode = match (wanted, state.phase) {
            (Wanted::Any, Phase::Open(_)) => return Ok(state),
            (Wanted::Any, _) => Mode::Compatible,
            (Wanted::Only(mode) | Wanted::Rather(mode), _) => mode,
        };
        if state.suits(mode)? {
            return Ok(state);
        }
        let closes = state.phase != Phase::Closed;
        let opening = Opening {
            cufile: state.loaded()?,
            closes,
            opens: Some(mode),
            // What the program has opened stays open.
            or_else_compatible: closes && state.opened > 0,
            settings: state.settings.clone(),
            compatible: state.compatible,
        };
        let change = state.begin(opening)?;
        state = at_rest(state)?;
        state.outcome_of(Some(change))?;
    }
}

impl State {
    /// Whether the driver is open as somebody needs it who wants this mode; `false` if it must be opened, or once more.
    fn suits(&self, mode: Mode) -> Result<bool, Refusal> {
        match (self.phase, mode) {
            (Phase::Open(open), mode) if open == mode => Ok(true),
            (Phase::Open(Mode::Direct), _) => Ok(self.uses > 0),
            (_, Mode::Compatible) => Ok(false),
            (Phase::Open(_), Mode::Direct) if self.cufile.as_ref().is_some_and(is_old) => Ok(true),
            (phase, Mode::Direct) => match &self.not_direct {
                Some(refusal) => Err(refusal.clone()),
                None if matches!(phase, Phase::Open(_)) && self.uses > 0 => {
                    let why = "not usable without its compatible mode, in which its driver is open for what is registered with it; \
                               where that is closed, the next transfer tries again";
                    Err(Refusal::new(why).passing())
                }
                None => Ok(false),
            },
        }
    }

    fn loaded(&mut self) -> Result<CuFile, Refusal> {
        if let Some(cufile) = &self.cufile {
            return Ok(cufile.clone());
        }
        let cufile = library::load()?;
        library::keep_log_out_of_working_directory(&cufile);
        Ok(self.cufile.insert(cufile).clone())
    }

    /// Has a thread of its own carry out a change, and returns its number.
    fn begin(&mut self, opening: Opening) -> Result<u64, Refusal> {
        let phase = self.phase;
        let kind = match opening.opens {
            Some(_) => Change::Opening,
            None => Change::Closing,
        };
        let change = move || {
            let done = opening.run(phase_mode(phase));
            let shared = shared();
            lock(&shared.state).end(done);
            shared.changed.notify_all();
        };
        let limit = Duration::from_millis(LIMIT_MS.load(Ordering::Relaxed));
        self.phase = Phase::Changing(kind, Instant::now() + limit);
        self.refused = None;
        self.change += 1;
        match start_aside("kvik-cufile", change) {
            Ok(()) => Ok(self.change),
            Err(cause) => {
                self.phase = phase;
                let why =
                    format!("not usable: no thread can be started to open its driver: {cause}");
                Err(Refusal::new(why).because(cause).passing())
            }
        }
    }

    /// How a change went. Where another one came behind it, that tells more than this.
    fn outcome_of(&self, change: Option<u64>) -> Result<(), Refusal> {
        match &self.refused {
            Some(refusal) if change == Some(self.change) => Err(refusal.clone()),
            _ => Ok(()),
        }
    }

    /// What a change has led to, also where nobody waited for it any more.
    fn end(&mut self, done: Done) {
        self.phase = done.mode.map_or(Phase::Closed, Phase::Open);
        self.compatible = done.compatible;
        self.refused = done.refused;
        if let Some(refusal) = done.not_direct {
            self.not_direct = Some(refusal);
        }
    }
}

fn phase_mode(phase: Phase) -> Option<Mode> {
    match phase {
        Phase::Open(mode) => Some(mode),
        _ => None,
    }
}

/// Waits until no change is under way.
///
/// # Errors
/// It does not end in time.
fn at_rest(mut state: Guard) -> Result<Guard, Refusal> {
    loop {
        let (change, until) = match state.phase {
            Phase::Changing(change, until) => (change, until),
            Phase::Lost(change) => return Err(lost(change)),
            _ => return Ok(state),
        };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            state.phase = Phase::Lost(change);
            continue;
        }
        let waited = shared().changed.wait_timeout(state, left);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn lost(change: Change) -> Refusal {
    let limit = Duration::from_millis(LIMIT_MS.load(Ordering::Relaxed));
    let (call, opened, opens) = match change {
        Change::Opening => ("cuFileDriverOpen", "opened", "opens"),
        Change::Closing => ("cuFileDriverClose", "closed", "closes"),
    };
    Refusal::new(format!(
        "not usable: its driver ({call}) has neither {opened} nor failed within {limit:?}; the thread that {opens} it is lost to this \
         process, which goes on without cuFile"
    ))
}

/// Begins to close the driver if nobody needs it; returns the number of that change.
fn close_if_unused(mut state: Guard) -> Result<(Guard, Option<u64>), Refusal> {
    let unused = state.opened == 0 && state.uses == 0 && !state.kept;
    let (true, Phase::Open(_), Some(cufile)) = (unused, state.phase, state.cufile.clone()) else {
        return Ok((state, None));
    };
    let closing = Opening {
        cufile,
        closes: true,
        opens: None,
        or_else_compatible: false,
        settings: Settings::default(),
        compatible: state.compatible,
    };
    let change = state.begin(closing)?;
    Ok((state, Some(change)))
}

/// A use that was just counted.
fn taken(state: &State) -> Result<Use, Refusal> {
    match (&state.cufile, state.phase) {
        (Some(cufile), Phase::Open(mode)) => Ok(Use {
            cufile: cufile.clone(),
            mode,
        }),
        // `opened` hands out no other.
        _ => Err(Refusal::new("not usable: its driver is not open")),
    }
}

impl Use {
    /// Its functions.
    pub(crate) fn cufile(&self) -> &CuFile {
        &self.cufile
    }

    /// How the driver is open; it stays so.
    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        // What a child inherited is its parent's, the lock included.
        if !device::is_started() {
            return;
        }
        let mut state = lock(&shared().state);
        state.uses -= 1;
        // Nobody waits for it: the next one who needs the driver does. Where no thread can be started it stays open.
        let _ = close_if_unused(state);
    }
}

/// Only a child may not come here: it lacks the thread that may hold the lock.
fn shared() -> &'static Shared {
    shared_value(&SHARED, Shared::default)
}

/// For tests: how long it is waited for.
pub(crate) fn wait_for(limit: Duration) {
    let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    LIMIT_MS.store(millis, Ordering::Relaxed);
}

static SHARED: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
/// How long opening and closing may take, in milliseconds. Opening for the first time takes up to seconds, more where many devices
/// are busy; an opening that spins was watched for eight minutes, and did not come back.
static LIMIT_MS: AtomicU64 = AtomicU64::new(30_000);
