//! Whether anything shows a direct path between storage and a device on this machine: only then does the compat mode `auto` load
//! cuFile and try it.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::compat;
use crate::pool::shared_value;
use crate::probe::{Fact, GpuProbe, Probe};

/// What shows a direct path. It is looked for once in a process, which takes a few milliseconds, and with no library.
pub(crate) fn sign() -> &'static Fact<String> {
    shared_value(&SIGN, || {
        if Probe::collect().wsl {
            return Fact::absent("the kernel is that of WSL");
        }
        let (nvidia_fs, p2pdma) = GpuProbe::signs();
        compat::sign_of_direct_path(&nvidia_fs, &p2pdma)
    })
}

/// Whether somebody has looked for it and found none.
pub(super) fn is_known_to_miss() -> bool {
    // SAFETY: what is not null came from a box, by `shared_value` or `show`, and is never freed.
    let sign = unsafe { SIGN.load(Ordering::Acquire).as_ref() };
    sign.is_some_and(|sign| sign.known().is_none())
}

/// For tests: as if the machine had shown this, from now on.
pub(crate) fn show(sign: Result<&str, &str>) {
    let shown = match sign {
        Ok(sign) => Fact::Known(sign.to_owned()),
        Err(none) => Fact::absent(none),
    };
    // What was there before stays: somebody may look at it.
    SIGN.store(Box::into_raw(Box::new(shown)), Ordering::Release);
}

static SIGN: AtomicPtr<Fact<String>> = AtomicPtr::new(ptr::null_mut());
