//! `fake_cufile_*`: how tests tell the fake what to do, and look at what was done. tests/src/fake/cufile.rs wraps them.

use std::ffi::c_int;
use std::time::Duration;

use kvik_fake_common::{Out, Text, hand_out};

use crate::entry::RULES;
use crate::state::{changed, state};

/// Exports controls. Numbers and texts go in, a number comes out.
macro_rules! controls {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),* $(,)?) -> $answer:ty $body:block)*) => {
        $($(#[$doc])* #[unsafe(no_mangle)] extern "C" fn $name($($arg: $type),*) -> $answer $body)*
    };
}

controls! {
    /// What `cuFileGetVersion` says.
    fn fake_cufile_set_version(version: c_int) -> c_int {
        state().version = version;
        0
    }

    /// The major version of nvidia-fs; 0 where it is not there.
    fn fake_cufile_set_nvfs(major: u32) -> c_int {
        state().nvfs = major;
        0
    }

    /// The most entries in a batch; with 0 there are no batches.
    fn fake_cufile_set_max_batch(most: usize) -> c_int {
        state().max_batch = most;
        0
    }

    /// Whether the kernel's own way between devices is there.
    fn fake_cufile_set_p2p(there: c_int) -> c_int {
        state().p2p = there != 0;
        0
    }

    /// Whether a direct path leads to the files that are registered from now on: 0 for no, 1 for yes.
    fn fake_cufile_set_direct(direct: c_int) -> c_int {
        state().direct = Some(direct != 0);
        0
    }

    /// Whoever opens the driver waits until this is called with 0.
    fn fake_cufile_hold_opening(held: c_int) -> c_int {
        state().opening_held = held != 0;
        changed();
        0
    }

    /// Whoever closes the driver waits until this is called with 0.
    fn fake_cufile_hold_closing(held: c_int) -> c_int {
        state().closing_held = held != 0;
        changed();
        0
    }

    /// How often a transfer named a registered buffer by the address where that starts.
    fn fake_cufile_hits() -> usize {
        state().hits
    }

    /// What each transfer takes longer.
    fn fake_cufile_set_delay(microseconds: u64) -> c_int {
        state().delay = Duration::from_micros(microseconds);
        0
    }

    /// No transfer goes on until this is called with 0.
    fn fake_cufile_hold(held: c_int) -> c_int {
        state().held = held != 0;
        changed();
        0
    }

    /// Adds rules for failures (kvik-fake-common). Returns 1 where `rules` cannot be read.
    fn fake_cufile_fail(rules: Text) -> c_int {
        c_int::from(!rules.read().is_ok_and(|rules| RULES.add(&rules)))
    }

    /// Forgets all rules.
    fn fake_cufile_fail_clear() -> c_int {
        RULES.clear();
        0
    }

    /// How often `name` was called; `*` for all calls together.
    fn fake_cufile_calls(name: Text) -> u64 {
        name.read().map_or(0, |name| RULES.calls(&name))
    }

    /// Starts the log, or empties it.
    fn fake_cufile_log_start() -> c_int {
        RULES.start_log();
        0
    }

    /// Writes the log to `to`, cut to `len` bytes with the zero that ends it; returns how long it is.
    fn fake_cufile_log(to: Out<u8>, len: usize) -> usize {
        hand_out(&RULES.log(), to, len)
    }

    /// Writes the faults, a line for each, in the same way.
    fn fake_cufile_fault_text(to: Out<u8>, len: usize) -> usize {
        hand_out(&state().faults.join("\n"), to, len)
    }

    /// Writes the parameters that were set, a line for each, in the same way.
    fn fake_cufile_parameters(to: Out<u8>, len: usize) -> usize {
        hand_out(&state().parameters.join("\n"), to, len)
    }

    /// How often the driver was opened and not closed.
    fn fake_cufile_opened() -> i64 {
        state().opened
    }

    /// Files that are registered.
    fn fake_cufile_live_files() -> usize {
        state().files.len()
    }

    /// Buffers that are registered.
    fn fake_cufile_live_buffers() -> usize {
        state().buffers.len()
    }

    /// Bytes of theirs.
    fn fake_cufile_live_buffer_bytes() -> usize {
        state().buffers.values().sum()
    }

    /// Streams that are registered.
    fn fake_cufile_live_streams() -> usize {
        state().streams.len()
    }

    /// Batches that were not destroyed.
    fn fake_cufile_live_batches() -> usize {
        state().batches.len()
    }

    /// Transfers that are on their way.
    fn fake_cufile_moving() -> usize {
        state().moving
    }

    /// How many there were at once, at most.
    fn fake_cufile_most_moving() -> usize {
        state().most_moving
    }
}
