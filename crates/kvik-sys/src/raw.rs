//! The vendor's types, constants and function types, as `cargo xtask codegen bindings` takes them from the headers.
#![allow(
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    reason = "generated, with the vendor's names"
)]

pub(crate) mod cuda;
pub(crate) mod cufile;
