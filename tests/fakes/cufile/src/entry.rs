//! Every exported call goes through `enter` or `count`: it is counted, and may be told to fail.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use kvik_fake_common::{Rules, Verdict};

use crate::status::{Answer, INTERNAL_ERROR, SUCCESS, Status};

/// What becomes of calls.
pub(crate) static RULES: LazyLock<Rules> =
    LazyLock::new(|| Rules::from_variable("FAKE_CUFILE_FAIL"));

/// Exports calls that return a status.
macro_rules! cufile {
    ($(fn $name:ident($($arg:ident: $type:ty),* $(,)?) $body:block)*) => {
        $(
            extern "C" fn $name($($arg: $type),*) -> $crate::status::Status {
                $crate::entry::enter(stringify!($name), || $body)
            }
            // The exported symbol is a second function, which nothing in the library refers to: so a copy of the library
            // from which a symbol was cut out can still be loaded.
            const _: () = {
                #[unsafe(no_mangle)]
                extern "C" fn $name($($arg: $type),*) -> $crate::status::Status {
                    self::$name($($arg),*)
                }
            };
        )*
    };
}
pub(crate) use cufile;

pub(crate) fn enter(name: &str, body: impl FnOnce() -> Answer) -> Status {
    match RULES.verdict(name) {
        Verdict::Fail(code) | Verdict::Late(code) => return Status::of_rule(code),
        // These are for calls that move bytes.
        Verdict::Pass | Verdict::Short | Verdict::Zero => {}
    }
    // No panic may cross the C interface.
    let done = catch_unwind(AssertUnwindSafe(body));
    done.unwrap_or(Err(INTERNAL_ERROR)).err().unwrap_or(SUCCESS)
}
