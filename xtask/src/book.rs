//! The book, built by mdbook from docs/.

use std::process::Command;

use crate::process::{self, Done};
use crate::setup;
use crate::workspace::{self, Graph};

pub(crate) fn run() -> Done {
    setup::mdbook()?;
    let folder = Graph::load()?.target_directory.join("book");
    process::run(
        Command::new("mdbook")
            .args(["build", "docs", "--dest-dir"])
            .arg(&folder)
            .current_dir(workspace::root()),
    )?;
    println!("the book is in {}", folder.display());
    Ok(())
}
