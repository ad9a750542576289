//! Files that are written by a command, so that a fact stands in one place.

mod bindings;

use std::path::{Path, PathBuf};

use crate::flags::Written;
use crate::process::Done;
use crate::workspace;

const CONFIGURATION: &str = "docs/src/configuration.md";

pub(crate) fn run(what: Written, check: bool) -> Done {
    let (again, texts) = match what {
        Written::Pages => ("cargo xtask codegen", vec![configuration()]),
        Written::Bindings => ("cargo xtask codegen bindings", bindings::texts()?),
    };
    for (file, text) in texts {
        let current = is_current(&file, &text)?;
        if check && !current {
            let file = file.display();
            return Err(format!("{file} is not current; run `{again}`"));
        }
        if !check {
            workspace::write(&file, &text)?;
            println!("wrote {}", file.display());
        }
    }
    Ok(())
}

/// The check of the bindings as a stage of a release, which has the time to fetch and build what it needs.
pub(crate) fn check_bindings() -> Done<String> {
    run(Written::Bindings, true).map(|()| String::new())
}

/// The page that differs from what would be written now.
pub(crate) fn stale() -> Done<Option<&'static str>> {
    let (file, text) = configuration();
    Ok((!is_current(&file, &text)?).then_some(CONFIGURATION))
}

/// The page opens with the command that wrote it: that line is part of the reference.
fn configuration() -> (PathBuf, String) {
    (PathBuf::from(CONFIGURATION), kvik_config::reference())
}

fn is_current(file: &Path, text: &str) -> Done<bool> {
    Ok(workspace::root().join(file).is_file()
        && workspace::read(file)?.is_some_and(|kept| kept == text))
}
