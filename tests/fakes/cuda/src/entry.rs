//! Every exported call goes through `enter`: it is counted, may be told to fail, and must come after `cuInit`.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use kvik_fake_common::{Rules, Verdict};

use crate::abi::{Answer, Code, NOT_INITIALIZED, NOT_PERMITTED, SUCCESS, UNKNOWN};
use crate::{capture, module, world};

/// Exports calls of the driver. `any fn` may come before `cuInit`; `fn` may not. The table of what was exported is for
/// `cuGetProcAddress`.
macro_rules! driver {
    ($table:ident: $($when:ident fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            extern "C" fn $name($($arg: $type),*) -> $crate::abi::Code {
                $crate::entry::enter(stringify!($name), $crate::entry::When::$when, || $body)
            }
            // The exported symbol is a second function, which nothing in the library refers to: so a copy of the library
            // from which a symbol was cut out can still be loaded.
            const _: () = {
                #[unsafe(no_mangle)]
                extern "C" fn $name($($arg: $type),*) -> $crate::abi::Code {
                    self::$name($($arg),*)
                }
            };
        )*
        pub(crate) const $table: &[(&str, fn() -> *const std::ffi::c_void)] =
            &[$((stringify!($name), || $name as *const std::ffi::c_void)),*];
    };
}
pub(crate) use driver;

/// What becomes of calls. Not part of the world: a call is counted before it waits for anything.
pub(crate) static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::from_variable("FAKE_CUDA_FAIL"));

/// When a call is allowed.
#[expect(non_camel_case_types, reason = "they read as keywords of `driver!`")]
pub(crate) enum When {
    any,
    ready,
}

thread_local! {
    /// Set while this thread runs a function of `cuLaunchHostFunc`, which must make no call of the driver.
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
    /// The code with which the work that this call queues will fail, once it runs.
    static LATE: Cell<Option<Code>> = const { Cell::new(None) };
}

pub(crate) fn enter(name: &'static str, when: When, body: impl FnOnce() -> Answer) -> Code {
    // No panic may cross the C interface; a fault of the fake itself looks like an unknown error.
    catch_unwind(AssertUnwindSafe(|| guarded(name, when, body))).unwrap_or(UNKNOWN)
}

fn guarded(name: &'static str, when: When, body: impl FnOnce() -> Answer) -> Code {
    LATE.set(None);
    match RULES.verdict(name) {
        // No call of the driver moves less than it was asked to.
        Verdict::Pass | Verdict::Short | Verdict::Zero => {}
        Verdict::Fail(code) => return code,
        Verdict::Late(code) => LATE.set(Some(code)),
    }
    if IN_HOST_FUNCTION.get() {
        world::fault(format!("{name} was called by a host function of a stream"));
        return NOT_PERMITTED;
    }
    if matches!(when, When::ready) && !world::is_initialised() {
        return NOT_INITIALIZED;
    }
    if matches!(when, When::ready) {
        module::wait_for_loader();
    }
    if let Err(code) = capture::check(name) {
        return code;
    }
    body().err().unwrap_or(SUCCESS)
}

/// Takes the code that a rule has for the work of this call.
pub(crate) fn take_late() -> Option<Code> {
    LATE.take()
}

/// Runs a host function, in which calls of the driver are refused.
pub(crate) fn as_host_function(work: impl FnOnce()) {
    IN_HOST_FUNCTION.set(true);
    work();
    IN_HOST_FUNCTION.set(false);
}
