//! Memory that a test registers with cuFile by its address, as Python does.
#![expect(unsafe_code, reason = "each call has its argument beside it")]

use kvik::{Registration, Result};

/// Registers what lies at `address`, which the test deregisters before it frees it.
///
/// # Errors
/// What kvik says.
pub fn register(address: u64) -> Result<Registration> {
    // SAFETY: tests keep to what the function asks for.
    unsafe { kvik::register_memory(std::ptr::without_provenance(address as usize)) }
}

/// Deregisters it; no transfer is under way.
///
/// # Errors
/// What kvik says.
pub fn deregister(address: u64) -> Result<()> {
    // SAFETY: as above.
    unsafe { kvik::deregister_memory(std::ptr::without_provenance(address as usize)) }
}
