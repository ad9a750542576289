//! Files that are written by a command, so that a fact stands in one place.

use std::path::Path;

use crate::process::Done;
use crate::workspace;

const CONFIGURATION: &str = "docs/src/configuration.md";

pub(crate) fn run(check: bool) -> Done {
    let file = Path::new(CONFIGURATION);
    if check {
        return match stale()? {
            Some(file) => Err(format!("{file} is not current; run `cargo xtask codegen`")),
            None => Ok(()),
        };
    }
    workspace::write(file, &configuration())?;
    println!("wrote {CONFIGURATION}");
    Ok(())
}

/// The generated file that differs from what would be written now.
pub(crate) fn stale() -> Done<Option<&'static str>> {
    let file = Path::new(CONFIGURATION);
    let current = workspace::root().join(file).is_file()
        && workspace::read(file)?.is_some_and(|text| text == configuration());
    Ok((!current).then_some(CONFIGURATION))
}

/// The page opens with the command that wrote it: that line is part of the reference.
fn configuration() -> String {
    kvik_config::reference()
}
