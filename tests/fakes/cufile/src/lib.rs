//! A libcufile over the fake libcuda: the calls of cuFile that kvik makes, for tests on machines without a GPU.
//!
//! Reads and writes are `pread` and `pwrite` between the file and the place where the fake libcuda keeps the bytes of a
//! device. They can fail, fall short and come late; so can each other call.
//!
//! ```text
//! driver, handle, buffer, transfer, stream, batch     the exported calls, each through `entry`
//!                     |
//! state               what is open, registered and on its way, behind one lock
//! cuda                the fake libcuda in this process
//! control             `fake_cufile_*`: what tests ask for and look at
//! ```
//! A fault is what a correct program never does; each is kept as a sentence (`fake_cufile_fault_text`).
//!
//! Variables, each with a control that wins over it: `FAKE_CUFILE_VERSION` (1150), `FAKE_CUFILE_NVFS` (0, the major version of
//! nvidia-fs; 0 is none), `FAKE_CUFILE_DELAY_US` (0, what each transfer takes longer), `FAKE_CUFILE_FAIL` (rules, see
//! kvik-fake-common; a code above 5000 is a status of cuFile, another one an errno of a transfer or an error of CUDA).
#![allow(
    non_snake_case,
    reason = "the calls have the names that cuFile gives them"
)]

mod entry;
mod state;
mod status;

mod cuda;

mod batch;
mod buffer;
mod control;
mod driver;
mod handle;
mod stream;
mod transfer;
