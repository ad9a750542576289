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
    // SAFETY: what is not null was made by `shared_value`, which frees nothing.
    let sign = unsafe { SIGN.load(Ordering::Acquire).as_ref() };
    sign.is_some_and(|sign| sign.known().is_none())
}

/// For tests: as if the machine had shown this. It counts if nobody has looked before.
pub(crate) fn show(sign: Result<&str, &str>) {
    shared_value(&SIGN, || match sign {
        Ok(sign) => Fact::Known(sign.to_owned()),
        Err(none) => Fact::absent(none),
    });
}

static SIGN: AtomicPtr<Fact<String>> = AtomicPtr::new(ptr::null_mut());
