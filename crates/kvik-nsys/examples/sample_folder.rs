//! The plugin over a folder that looks like `/sys/class/net`, at moments that are given to it: to see what a tool is told of
//! counters that go back, of interfaces that come and go.
//!
//! ```text
//! sample_folder FOLDER TOOL [REGEX]
//! ```
//! Each line of standard input is a moment in milliseconds, at which a sample is taken; then the line is repeated.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use kvik_nsys::{Device, Options, Plugin};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, tool, device @ ..] = args.as_slice() else {
        return Err("usage: sample_folder FOLDER TOOL [REGEX]".into());
    };
    let mut options = Options::default();
    options.device = device.first().cloned().map(Device::new).transpose()?;
    let (folder, tool) = (Path::new(folder), Path::new(tool));
    let mut plugin = Plugin::start(&options, folder, Some(tool), Duration::ZERO)?;
    println!("{}", plugin.interfaces().join(" "));
    for line in std::io::stdin().lines() {
        let line = line?;
        plugin.sample(Duration::from_millis(line.parse()?));
        println!("{line}");
    }
    Ok(())
}
