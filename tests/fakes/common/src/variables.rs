//! What the environment says to a fake when it is first used. Each fake lists its variables in its `lib.rs`.

/// The variable `name`, unless it is empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the fakes stand where foreign libraries stand, and know no settings of ours"
)]
#[must_use]
pub fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// The variable `name` as a number.
///
/// # Panics
///
/// Where it holds something else: a misspelt number would silently test something else.
#[must_use]
pub fn number<T: std::str::FromStr>(name: &str, default: T) -> T {
    let Some(text) = text(name) else {
        return default;
    };
    text.parse()
        .unwrap_or_else(|_| panic!("{name} is not a number: {text}"))
}
