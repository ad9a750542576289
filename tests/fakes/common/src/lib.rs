//! What the fake libraries share: pointers that come from a caller of a C interface, failures on demand, and variables.
//!
//! A fake counts each call under its name and asks its [`Rules`] what becomes of it. Everything here is quiet about what
//! the calls mean; that is for the fakes to say.

mod raw;
mod rules;
mod variables;

pub use raw::{In, NULL, Out, Text, hand_out};
pub use rules::{Rules, Verdict};
pub use variables::{number, text};
