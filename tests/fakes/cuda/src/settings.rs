//! What the environment says when the library is first used. Each setting has a control call too, which wins.
//!
//! `FAKE_CUDA_DEVICES` (2), `FAKE_CUDA_VERSION` (13000), `FAKE_CUDA_INIT` (0, the status of `cuInit`), `FAKE_CUDA_MEMORY`
//! (bytes of each device, 16 GiB), `FAKE_CUDA_DELAY_US` (0, what each copy takes longer), `FAKE_CUDA_FAIL` (see inject.rs).

/// The variable `name`, unless it is empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the fake stands where a foreign library stands, and knows no settings of ours"
)]
pub(crate) fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// The variable `name` as a number.
pub(crate) fn number<T: std::str::FromStr>(name: &str, default: T) -> T {
    let Some(text) = text(name) else {
        return default;
    };
    // A misspelt number would silently test something else.
    text.parse()
        .unwrap_or_else(|_| panic!("{name} is not a number: {text}"))
}
