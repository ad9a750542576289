//! A remote object to a file: pieces are read ahead, and written as they come.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Instant;

use kvik::config::Config;
use kvik::{Pending, RemoteHandle};
use serde_json::json;

use crate::failure::{Failure, Result, show};
use crate::output::{Output, Report};
use crate::progress::Progress;
use crate::stop::{Stop, stopped};
use crate::units;

use super::part::Part;
use super::pump::{Load, interrupted};
use super::{Flags, destination, give_up, kept};

pub(super) fn run(
    url: &str,
    flags: &Flags,
    output: &Output,
    stop: &Stop,
    begun: Instant,
) -> Result<Report> {
    if flags.verifies() {
        let why = "copy from a URL: --verify and --via-gpu are for files";
        return Err(Failure::usage(why));
    }
    let object = RemoteHandle::open(url)?;
    // The name in the URL, without what follows it.
    let name = url.split(['?', '#']).next().unwrap_or(url);
    let path = destination::resolve(Path::new(name), &flags.destination)?;
    let part = Part::create(&path)?;
    let name = part.path().to_owned();
    stop.last_words(move |exit| kept(stopped("copy", exit), &name));
    if let Err(failure) = fill(&object, &part, flags, output, stop) {
        stop.settle();
        return Err(give_up(failure, part));
    }
    if let Some(exit) = stop.settle() {
        return Err(give_up(stopped("copy", exit), part));
    }
    part.publish(&path, !flags.no_sync)?;
    let time = begun.elapsed();
    let text = format!(
        "copied {} to {}: {} in {}, {}",
        object.url(),
        show(&path),
        units::size(object.len()),
        units::time(time),
        units::rate(object.len(), time),
    );
    Ok(Report::new(json!({
        "source": object.url(),
        "destination": path.to_string_lossy(),
        "bytes": object.len(),
        "seconds": time.as_secs_f64(),
        "synced": !flags.no_sync,
    }))
    .remark(text))
}

fn fill(
    object: &RemoteHandle,
    part: &Part,
    flags: &Flags,
    output: &Output,
    stop: &Stop,
) -> Result<()> {
    let target = part.handle();
    target.set_len(object.len())?;
    let load = Load::from(&Config::current())?;
    let depth = load.depth.max(REQUESTS);
    let mut progress = Progress::new(output, "copying", object.len());
    let mut flying: VecDeque<(u64, Pending<Vec<u8>>)> = VecDeque::with_capacity(depth);
    let mut spare: Vec<Vec<u8>> = Vec::new();
    let mut next = 0;
    loop {
        interrupted(stop)?;
        while next < object.len() && flying.len() < depth {
            let length = (object.len() - next).min(load.piece as u64);
            let mut buffer = spare.pop().unwrap_or_default();
            buffer.resize(length as usize, 0);
            flying.push_back((next, object.submit_read(buffer, next)));
            next += length;
        }
        let Some((offset, pending)) = flying.pop_front() else {
            break;
        };
        while pending.wait_timeout(LOOK).is_none() {
            interrupted(stop)?;
        }
        let (read, buffer) = pending.finish();
        let read = read?;
        target.write_all_at(&buffer[..read], offset)?;
        progress.advance(read as u64);
        spare.push(buffer);
    }
    drop(progress);
    // Nobody else may open the part before it is what was asked for.
    part.set_mode(MODE)?;
    if !flags.no_sync {
        target.sync()?;
    }
    Ok(())
}

// As many as a read of one piece after another would have under way.
const REQUESTS: usize = 16;
// How soon somebody who asks to stop is heard.
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);
// A server tells of no permissions: those of files that are for everybody to read.
const MODE: u32 = 0o644;
