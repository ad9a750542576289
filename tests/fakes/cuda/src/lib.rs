//! A libcuda over host memory: the driver calls that kvik makes, for tests on machines without a GPU.
//!
//! It keeps the documented rules of the driver (which call needs a context, what a stream waits for, what an attribute
//! says about a pointer), and is strict where the real one is lenient: memory of the device faults when the CPU touches
//! it, addresses are never used twice, copies run late, on a thread of their stream, and read their source when they run.
//!
//! ```text
//! device, context, memory, pointer, copy, stream, event, module, capture      the exported calls, each through `entry`
//!                       |
//! world                 contexts, allocations, streams, events and faults, behind one lock
//! space  queue  place   where memory lies; the thread of each stream; what a copy reads and writes
//! control               `fake_cuda_*`: what tests ask for and look at
//! ```
//! A fault is what a correct program never does; each is kept as a sentence (`fake_cuda_fault`).
//!
//! Variables, each with a control that wins over it: `FAKE_CUDA_DEVICES` (2), `FAKE_CUDA_VERSION` (13000), `FAKE_CUDA_INIT` (0,
//! the status of `cuInit`), `FAKE_CUDA_MEMORY` (bytes of each device, 16 GiB), `FAKE_CUDA_DELAY_US` (0, what each copy
//! takes longer), `FAKE_CUDA_FAIL` (rules, see kvik-fake-common).
//!
//! Not here: kernels but the two that module.rs knows by name, graphs, arrays, virtual memory, IPC. It says nothing about speed.
#![allow(
    non_snake_case,
    reason = "the calls have the names that the driver gives them"
)]

mod abi;
mod entry;

mod place;
mod queue;
mod space;
mod world;

mod capture;
mod context;
mod control;
mod copy;
mod device;
mod event;
mod memory;
mod module;
mod names;
mod pointer;
mod proc;
mod stream;
