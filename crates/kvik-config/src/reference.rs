//! The documentation page of all settings, made from the table.

/// The page `docs/src/configuration.md`, in Markdown.
#[must_use]
pub fn reference() -> String {
    String::new()
}
