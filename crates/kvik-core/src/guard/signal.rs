//! The handler of `SIGBUS`: takes the faults of guarded copies, and hands all others to whoever had the signal before.
//!
//! The signal belongs to the whole process, and others want it too: the standard library, crash reporters, Python's
//! `faulthandler`. So we come last and ask little: the handler is put in place at the first guarded copy, it keeps what was
//! there before ([`Level`]) and calls it for every signal that is not a fault of ours. When somebody else's handler is found
//! in its place, it is put in front of that one; as that one may call ours in turn, each such step has a function of its own
//! that knows its own predecessor, and no signal goes round in circles.

use std::ffi::c_void;
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{c_int, siginfo_t};
use nix::errno::Errno;

use crate::once::Once;

/// Why no guarded copy can be made at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unguarded {
    /// The thread has `SIGBUS` blocked: a fault would end the process.
    Blocked,
    /// The handler was replaced by others again and again, or another thread takes long to put it in place.
    Contended,
    /// The operating system refuses.
    Refused(Errno),
}

impl fmt::Display for Unguarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unguarded::Blocked => f.write_str("the thread blocks SIGBUS"),
            Unguarded::Contended => f.write_str("others keep replacing the handler of SIGBUS"),
            Unguarded::Refused(errno) => write!(f, "SIGBUS cannot be handled: {}", errno.desc()),
        }
    }
}

/// Makes sure that a fault on this thread reaches our handler now. Two system calls where it is in place.
pub(super) fn ready() -> Result<(), Unguarded> {
    if is_blocked()? {
        return Err(Unguarded::Blocked);
    }
    if is_ours(&disposition()?) {
        return Ok(());
    }
    // Not a lock, but a wait with an end: a child forked while somebody installs must not wait for ever.
    for _ in 0..PATIENCE {
        if !INSTALLING.swap(true, Ordering::Acquire) {
            let outcome = install();
            INSTALLING.store(false, Ordering::Release);
            return outcome;
        }
        std::thread::yield_now();
    }
    Err(Unguarded::Contended)
}

fn is_ours(disposition: &libc::sigaction) -> bool {
    HANDLERS
        .iter()
        .any(|handler| disposition.sa_sigaction == *handler as usize)
}

/// Puts a handler in front of the present disposition. One thread at a time.
fn install() -> Result<(), Unguarded> {
    let previous = disposition()?;
    if is_ours(&previous) {
        return Ok(());
    }
    let level = (0..LEVELS.len())
        .find(|level| {
            // A level is used again for the predecessor it knows: somebody may put his handler back and back again.
            let known = LEVELS[*level].get_or_make(|| Level(previous));
            known.is(&previous)
        })
        .ok_or(Unguarded::Contended)?;
    let mut ours = previous;
    ours.sa_sigaction = HANDLERS[level] as usize;
    // The mask, the stack, and whether the signal interrupts system calls or itself, stay as the predecessor wants them.
    let kept = libc::SA_RESTART | libc::SA_NODEFER | libc::SA_ONSTACK;
    ours.sa_flags = libc::SA_SIGINFO
        | match previous.sa_sigaction {
            // Threads of foreign runtimes may have no room on their own stack.
            libc::SIG_DFL | libc::SIG_IGN => libc::SA_ONSTACK,
            _ => previous.sa_flags & kept,
        };
    let replaced = set_disposition(&ours)?;
    if !LEVELS[level].get().is_some_and(|level| level.is(&replaced)) {
        // Somebody came in between: that one stays.
        set_disposition(&replaced)?;
        return Err(Unguarded::Contended);
    }
    Ok(())
}

/// What handled the signal before ours, at one step.
struct Level(libc::sigaction);

impl Level {
    fn is(&self, other: &libc::sigaction) -> bool {
        self.0.sa_sigaction == other.sa_sigaction && self.0.sa_flags == other.sa_flags
    }

    /// Does with the signal what would have been done without us.
    ///
    /// # Safety
    /// Called by a handler, with its arguments.
    unsafe fn pass(&self, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        // SAFETY: the kernel's, by our caller's promise.
        let code = unsafe { (*info).si_code };
        match self.0.sa_sigaction {
            // The kernel never ignores a fault; somebody's `kill` it does.
            libc::SIG_IGN if !is_fault(code) => {}
            libc::SIG_DFL | libc::SIG_IGN => {
                reset();
                if !is_fault(code) {
                    // It does not come again by itself as a fault does. Delivered when we return.
                    // SAFETY: raise(3) may be called by handlers and takes a number.
                    unsafe { libc::raise(signal) };
                }
            }
            function => {
                if self.0.sa_flags & libc::SA_RESETHAND != 0 {
                    reset();
                }
                if self.0.sa_flags & libc::SA_SIGINFO != 0 {
                    // SAFETY: sigaction(2): with SA_SIGINFO the field holds a function of this type.
                    let function: Handler = unsafe { std::mem::transmute(function) };
                    function(signal, info, context);
                } else {
                    // SAFETY: sigaction(2): without SA_SIGINFO it holds one of this type.
                    let function: extern "C" fn(c_int) = unsafe { std::mem::transmute(function) };
                    function(signal);
                }
            }
        }
    }
}

/// Whether a signal with this code is the answer to an instruction of this thread, which would raise it again.
fn is_fault(code: c_int) -> bool {
    matches!(
        code,
        libc::BUS_ADRALN | libc::BUS_ADRERR | libc::BUS_OBJERR | libc::BUS_MCEERR_AR
    )
}

/// The handler of one level. Runs on any thread at any time, so it only reads what was written before it was put in place.
extern "C" fn handle<const LEVEL: usize>(
    signal: c_int,
    info: *mut siginfo_t,
    context: *mut c_void,
) {
    let (instructions, landing) = super::guarded();
    // SAFETY: sigaction(2): with SA_SIGINFO the second argument points to the signal's facts.
    let code = unsafe { (*info).si_code };
    let context_of_thread = context.cast::<libc::ucontext_t>();
    // SAFETY: the same: the third points to where the interrupted thread's registers are kept, nobody else's meanwhile.
    let at = unsafe { &raw mut (*context_of_thread).uc_mcontext.gregs[libc::REG_RIP as usize] };
    // SAFETY: as above.
    let instruction = unsafe { at.read() };
    if is_fault(code) && instructions.contains(&(instruction as usize)) {
        // SAFETY: as above. The thread goes on at the landing, as point 2 of the text of guard.rs allows.
        unsafe { at.write(landing as i64) };
        return;
    }
    if let Some(level) = LEVELS[LEVEL].get() {
        // SAFETY: these are the arguments of a handler.
        unsafe { level.pass(signal, info, context) };
    }
}

fn is_blocked() -> Result<bool, Unguarded> {
    let mut mask = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: without a new mask nothing is changed; the present one is stored to `mask`, which is one.
    let code = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), mask.as_mut_ptr()) };
    if code != 0 {
        return Err(Unguarded::Refused(Errno::from_raw(code)));
    }
    // SAFETY: filled by the call, and zeroed before that.
    let mask = unsafe { mask.assume_init() };
    // SAFETY: reads a set that was filled.
    Ok(unsafe { libc::sigismember(&mask, libc::SIGBUS) } == 1)
}

fn disposition() -> Result<libc::sigaction, Unguarded> {
    exchange(ptr::null())
}

/// Returns the former one.
fn set_disposition(action: &libc::sigaction) -> Result<libc::sigaction, Unguarded> {
    exchange(action)
}

fn exchange(action: *const libc::sigaction) -> Result<libc::sigaction, Unguarded> {
    let mut former = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: `action` is null or a whole structure, made from one that this call has given and, in `install`, a handler
    // that keeps to what a handler may do; the former one is stored to `former`.
    let code = unsafe { libc::sigaction(libc::SIGBUS, action, former.as_mut_ptr()) };
    Errno::result(code).map_err(Unguarded::Refused)?;
    // SAFETY: filled by the call, and zeroed before that, which is a valid value.
    Ok(unsafe { former.assume_init() })
}

/// Gives the signal its default action, which is to end the process.
fn reset() {
    let action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all zeros is SIG_DFL with an empty mask and no flags.
    let action = unsafe { action.assume_init() };
    // Called by handlers, which sigaction(2) may be; its only failures are wrong arguments.
    let _ = set_disposition(&action);
}

type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

// Each is written once, before its handler is put in place.
static LEVELS: [Once<Level>; 4] = [const { Once::new() }; 4];
static HANDLERS: [Handler; LEVELS.len()] = [handle::<0>, handle::<1>, handle::<2>, handle::<3>];
// To install takes microseconds, unless the thread that does loses its processor meanwhile.
const PATIENCE: usize = 1000;
static INSTALLING: AtomicBool = AtomicBool::new(false);
