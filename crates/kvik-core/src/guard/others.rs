//! Tests with all others who may have the signal before and after us. What may end a process runs in a forked child.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use libc::{c_int, siginfo_t};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use super::Unguarded;
use super::tests::{gone, gone_copies};

#[test]
fn a_fault_elsewhere_ends_the_process_as_it_would_have() {
    for before in [Disposition::Default, Disposition::Ignored] {
        ends_by_sigbus(|| {
            set(before);
            assert_eq!(gone_copies(&gone()), Ok(0));
            gone().touch();
        });
    }
    // Without `set`: the standard library's handler is the predecessor.
    ends_by_sigbus(|| {
        assert_eq!(gone_copies(&gone()), Ok(0));
        gone().touch();
    });
}

#[test]
fn a_fault_elsewhere_reaches_the_handler_from_before() {
    for (before, code) in [(Disposition::WithFacts, 17), (Disposition::Plain, 18)] {
        exits_with(code, || {
            set(before);
            assert_eq!(gone_copies(&gone()), Ok(0));
            gone().touch();
        });
    }
}

#[test]
fn a_handler_put_in_our_place_keeps_its_faults_and_we_ours() {
    exits_with(17, || {
        assert_eq!(gone_copies(&gone()), Ok(0));
        set(Disposition::WithFacts);
        assert_eq!(gone_copies(&gone()), Ok(0));
        gone().touch();
    });
}

#[test]
fn a_handler_that_puts_us_back_and_raises_again_does_not_go_round_in_circles() {
    ends_by_sigbus(|| {
        set(Disposition::Default);
        assert_eq!(gone_copies(&gone()), Ok(0));
        set(Disposition::PutsBackAndRaises);
        assert_eq!(gone_copies(&gone()), Ok(0));
        gone().touch();
    });
}

#[test]
fn a_signal_that_was_sent_does_what_it_would_have_done() {
    let send = || nix::sys::signal::raise(Signal::SIGBUS).unwrap();
    exits_with(0, || {
        set(Disposition::Ignored);
        assert_eq!(gone_copies(&gone()), Ok(0));
        send();
    });
    ends_by_sigbus(|| {
        set(Disposition::Default);
        assert_eq!(gone_copies(&gone()), Ok(0));
        send();
    });
    exits_with(17, || {
        set(Disposition::WithFacts);
        assert_eq!(gone_copies(&gone()), Ok(0));
        send();
    });
}

#[test]
fn who_keeps_replacing_the_handler_gets_his_way() {
    exits_with(0, || {
        let others = [other::<0>, other::<1>, other::<2>, other::<3>, other::<4>];
        let outcomes = others.map(|other: Handler| {
            put(other as usize, libc::SA_SIGINFO);
            gone_copies(&gone())
        });
        assert_eq!(outcomes[0], Ok(0));
        assert_eq!(outcomes[4], Err(Unguarded::Contended));
        // One that was met before is no new one.
        put(others[0] as usize, libc::SA_SIGINFO);
        assert_eq!(gone_copies(&gone()), Ok(0));
    });
}

#[derive(Clone, Copy)]
enum Disposition {
    Default,
    Ignored,
    WithFacts,
    Plain,
    PutsBackAndRaises,
}

fn set(disposition: Disposition) {
    let (function, flags) = match disposition {
        Disposition::Default => (libc::SIG_DFL, 0),
        Disposition::Ignored => (libc::SIG_IGN, 0),
        Disposition::WithFacts => (other::<17> as Handler as usize, libc::SA_SIGINFO),
        Disposition::Plain => (plain as extern "C" fn(c_int) as usize, 0),
        Disposition::PutsBackAndRaises => (
            puts_back_and_raises as Handler as usize,
            libc::SA_SIGINFO | libc::SA_NODEFER,
        ),
    };
    let former = put(function, flags);
    if matches!(disposition, Disposition::PutsBackAndRaises) {
        assert!(PUT_BACK.set(former).is_ok());
    }
}

fn put(function: usize, flags: c_int) -> libc::sigaction {
    // SAFETY: all zeros is a valid value.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = function;
    action.sa_flags = flags;
    let mut former = action;
    // SAFETY: the handlers below do what handlers may do.
    let code = unsafe { libc::sigaction(libc::SIGBUS, &action, &mut former) };
    assert_eq!(code, 0);
    former
}

type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

extern "C" fn other<const CODE: c_int>(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel's, as handed to us.
    let told = unsafe { (*info).si_signo };
    // SAFETY: _exit(2) may be called by handlers.
    unsafe { libc::_exit(if told == signal { CODE } else { 99 }) };
}

extern "C" fn plain(_: c_int) {
    // SAFETY: _exit(2) may be called by handlers.
    unsafe { libc::_exit(18) };
}

/// What Python's `faulthandler` does.
extern "C" fn puts_back_and_raises(signal: c_int, _: *mut siginfo_t, _: *mut c_void) {
    if let Some(former) = PUT_BACK.get() {
        put(former.sa_sigaction, former.sa_flags);
    }
    // SAFETY: raise(3) may be called by handlers.
    unsafe { libc::raise(signal) };
}

static PUT_BACK: OnceLock<libc::sigaction> = OnceLock::new();

fn in_child(work: impl FnOnce()) -> WaitStatus {
    // SAFETY: the child allocates, which glibc, for which this test is written, makes possible after a fork; it takes no
    // other lock that a thread of the parent may hold.
    match unsafe { fork() }.unwrap() {
        ForkResult::Parent { child } => waitpid(child, None).unwrap(),
        ForkResult::Child => {
            nix::unistd::alarm::set(20);
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            // SAFETY: ends this child, and nothing of the test harness runs in it.
            unsafe { libc::_exit(if done.is_ok() { 0 } else { 101 }) };
        }
    }
}

#[track_caller]
fn exits_with(code: i32, work: impl FnOnce()) {
    let status = in_child(work);
    assert!(
        matches!(status, WaitStatus::Exited(_, found) if found == code),
        "{status:?}"
    );
}

#[track_caller]
fn ends_by_sigbus(work: impl FnOnce()) {
    let status = in_child(work);
    assert!(
        matches!(status, WaitStatus::Signaled(_, Signal::SIGBUS, _)),
        "{status:?}"
    );
}
