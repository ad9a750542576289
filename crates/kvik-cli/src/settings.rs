//! Settings given on the command line, laid over the environment and the user's file for this process.

use kvik::config::{Config, Key, Layer};

use crate::failure::{Failure, Result};
use crate::flags::Global;

/// Makes `--set`, `--threads` and `--task-size` the settings of this process; the named flags win over `--set`.
pub(crate) fn apply(flags: &Global) -> Result<()> {
    let mut layer = Layer::new();
    for pair in &flags.set {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Failure::usage(format!(
                "--set {pair}: write KEY=VALUE, as in --set task_size=8MiB"
            ))
            .hint(LISTED));
        };
        layer = layer.set(key(name.trim())?, value.trim());
    }
    for (key, text) in [
        (Key::NumThreads, &flags.threads),
        (Key::TaskSize, &flags.task_size),
    ] {
        if let Some(text) = text {
            layer = layer.set(key, text);
        }
    }
    if layer.is_empty() {
        return Ok(());
    }
    // kvik calls it the process; whoever typed the command knows it as the command line.
    Config::set_process(layer).map_err(|error| {
        let failure = Failure::from(error);
        let message = failure
            .message()
            .replace("from process", "from the command line");
        failure.reworded(message)
    })
}

/// The key of this name, written with underscores or with dashes.
pub(crate) fn key(name: &str) -> Result<Key> {
    Key::from_name(&name.replace('-', "_"))
        .ok_or_else(|| Failure::usage(format!("there is no setting {name:?}")).hint(LISTED))
}

const LISTED: &str = "`kvik config` lists every setting";
