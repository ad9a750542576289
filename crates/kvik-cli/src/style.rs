//! The few styles in use. Words carry the meaning; a style only helps the eye (`--color never` loses nothing).

use clap::builder::styling::{AnsiColor, Styles};

pub(crate) use clap::builder::styling::Style;

pub(crate) const HEADING: Style = Style::new().bold();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const NOTE: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const FAINT: Style = Style::new().dimmed();

/// The styles of help texts.
pub(crate) const HELP: Styles = Styles::styled()
    .header(HEADING)
    .usage(HEADING)
    .literal(HEADING);
