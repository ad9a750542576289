//! A copy out of a mapped file that survives a file cut short: it stops and counts, where a plain copy ends the process.
//!
//! The processor raises a fault for a page that the file no longer has, and the kernel turns it into `SIGBUS` for the
//! thread. Our handler (`signal.rs`) looks where the thread was: in the few instructions below, and it goes on behind the
//! copy; anywhere else, and the signal is none of ours.
//!
//! Why this is sound:
//! 1. The copy is one block of assembly. The compiler knows nothing of its loads, so no reference to memory that may vanish
//!    or change under us exists in Rust, and no instruction of it can move out of the block.
//! 2. It uses no stack and, of the registers, only those that a call may change; so control can go from any of its
//!    instructions to its last ones.
//! 3. A copy is only begun while the signal is not blocked on this thread and its handler is ours: see [`signal::ready`].
//!    Who replaces the handler during a copy, and does not call it, takes the guard away.

mod map;
mod signal;

#[cfg(test)]
mod others;
#[cfg(test)]
mod tests;

use std::arch::global_asm;
use std::mem::MaybeUninit;
use std::ops::Range;

pub(crate) use map::{FileMap, Unmapped, copy_kept};
use signal::Unguarded;

/// Copies from `from` on into all of `to`, past the cache, up to the first byte that cannot be had; returns how many bytes
/// of `to` are written, in order. Fewer than its length: some page, of either side, is gone.
///
/// # Errors
/// The thread cannot be guarded at the moment. Nothing was copied.
///
/// # Safety
/// 1. From `from` on, as many bytes as `to` is long lie in one mapping that stays for the call. Reading them may fault with
///    `SIGBUS`, and others may write to them.
/// 2. With [`Lanes::Wide`] the processor has AVX-512.
unsafe fn copy(
    to: &mut [MaybeUninit<u8>],
    from: *const u8,
    lanes: Lanes,
) -> Result<usize, Unguarded> {
    signal::ready()?;
    // SAFETY: `to` is ours to write; the mapping is there, by our caller's promise 1, and a fault in it is met by the handler
    // that `ready` has just seen in place; the instructions are there, by promise 2. The block keeps to the C calling
    // convention (point 2 of the module's text).
    Ok(unsafe { guarded_copy(to.as_mut_ptr().cast(), from, to.len(), lanes as usize) })
}

/// How many bytes a load and a store move. Wide ones make a copy out of the page cache faster by a tenth (Sapphire Rapids,
/// 82 turns), which those of copy.rs, out of the processor's cache, are not.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
enum Lanes {
    /// 16: every x86-64.
    Narrow = 0,
    /// 64: AVX-512.
    Wide = 1,
}

impl Lanes {
    /// The widest that this processor has.
    fn best() -> Lanes {
        match std::arch::is_x86_feature_detected!("avx512f") {
            true => Lanes::Wide,
            false => Lanes::Narrow,
        }
    }
}

/// The instructions that may fault, by their addresses, and where to go on if one does.
fn guarded() -> (Range<usize>, usize) {
    let landing = (&raw const LANDING).addr();
    (guarded_copy as *const () as usize..landing, landing)
}

unsafe extern "C" {
    #[link_name = concat!("kvik_core_guarded_copy_", env!("CARGO_PKG_VERSION"))]
    fn guarded_copy(to: *mut u8, from: *const u8, count: usize, lanes: usize) -> usize;
    #[link_name = concat!("kvik_core_guarded_landing_", env!("CARGO_PKG_VERSION"))]
    static LANDING: u8;
}

// Names carry the version: a program may hold two versions of this crate.
//
// rdi, rsi, rdx, rcx: to, from, count, lanes. rdi is moved on only behind the stores that it counts (`rep movsb` keeps it exact), so at
// any fault it stands behind the last byte that is written. Lines are stored one after the other, see copy.rs; the sfence is
// for the same reason as there.
global_asm!(
    ".pushsection .text.kvik_guarded_copy, \"ax\", @progbits",
    ".p2align 6",
    ".globl {copy}",
    ".hidden {copy}",
    ".type {copy}, @function",
    "{copy}:",
    ".cfi_startproc",
    "mov r8, rdi",
    "mov r9, rcx",
    // Up to the first whole line of the target.
    "mov rcx, rdi",
    "neg rcx",
    "and ecx, 63",
    "cmp rcx, rdx",
    "cmova rcx, rdx",
    "sub rdx, rcx",
    "rep movsb",
    // Whole lines.
    "mov rcx, rdx",
    "shr rcx, 6",
    "jz 4f",
    "test r9, r9",
    "jz 3f",
    ".p2align 4",
    // One of the upper sixteen registers: they need no vzeroupper afterwards.
    "2:",
    "vmovdqu64 zmm16, [rsi]",
    "vmovntdq [rdi], zmm16",
    "add rsi, 64",
    "add rdi, 64",
    "dec rcx",
    "jnz 2b",
    "jmp 4f",
    ".p2align 4",
    "3:",
    "movdqu xmm0, [rsi]",
    "movdqu xmm1, [rsi + 16]",
    "movdqu xmm2, [rsi + 32]",
    "movdqu xmm3, [rsi + 48]",
    "movntdq [rdi], xmm0",
    "movntdq [rdi + 16], xmm1",
    "movntdq [rdi + 32], xmm2",
    "movntdq [rdi + 48], xmm3",
    "add rsi, 64",
    "add rdi, 64",
    "dec rcx",
    "jnz 3b",
    // What is left of the last one.
    "4:",
    "mov ecx, edx",
    "and ecx, 63",
    "rep movsb",
    ".globl {landing}",
    ".hidden {landing}",
    "{landing}:",
    "sfence",
    "mov rax, rdi",
    "sub rax, r8",
    "ret",
    ".cfi_endproc",
    ".size {copy}, . - {copy}",
    ".popsection",
    copy = sym guarded_copy,
    landing = sym LANDING,
);
