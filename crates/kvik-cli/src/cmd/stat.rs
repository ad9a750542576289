//! `kvik stat`: what kvik knows about a file, and by which route its bytes would go.

mod object;

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use clap::Args;
use kvik::{FileHandle, FileProbe, RemoteHandle};
use serde_json::{Value, json};

use crate::Exit;
use crate::failure::{Failure, Result};
use crate::output::Report;
use crate::style::HEADING;
use crate::url::url_of;

/// Show size, cached pages, device and alignment of a file, and which route its bytes take
///
/// What cannot be found out is shown with the reason. Nothing is read from the file itself; where the
/// kernel does not tell what is cached, a few pages are tried.
///
/// Of a URL it shows the kind of object, its size, by what its version is told (and so whether a copy of
/// it can be gone on with), how the server calls itself, and as whom it was asked; of an object of S3
/// also the address, the region, and where the bucket is in the address.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = AFTER)]
pub(crate) struct Flags {
    /// The file, or the URL of an object; directories and devices have less to tell
    path: PathBuf,
}

const AFTER: &str = "\
Exit codes:
  0 shown, 1 the server cannot be reached, 3 no such file or object, 4 its directory may not be searched or
  the server denies it; `kvik --help` has the whole table.

Examples:
  kvik stat data.bin
  kvik stat https://example.org/data.bin
  kvik stat s3://bucket/data.bin
  kvik stat data.bin --json | jq '.cached, .route.allowed'";

pub(crate) fn run(flags: &Flags) -> Result<Report> {
    let path = &flags.path;
    if let Some(url) = url_of(path) {
        return Ok(object::report(url, &RemoteHandle::open(url)?));
    }
    let probe = FileProbe::of(path)?;
    let facts = fs::metadata(path).map_err(|error| Failure::io("inspect", path, &error))?;
    let allocated = facts.blocks() * 512;
    // Holes are what makes it smaller; an inline or compressed file may be, too.
    let sparse = facts.is_file() && allocated < facts.len();
    let handle = FileHandle::open(path);
    let residency = handle
        .as_ref()
        .ok()
        .map(|handle| handle.residency(0..u64::MAX));
    let route = handle.map(|handle| handle.route());

    let mut object = as_json(&probe)?;
    object["allocated_bytes"] = json!(allocated);
    object["sparse"] = json!(sparse);
    object["mode"] = json!(format!("{:04o}", facts.mode() & 0o7777));
    object["residency"] = as_json(&residency)?;
    object["route"] = match &route {
        Ok(route) => as_json(route)?,
        Err(error) => json!({ "absent": error.to_string() }),
    };

    let mut text = format!("{probe}\n");
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{:LABEL$}{allocated}{}",
        "allocated, bytes",
        if sparse { " (it has holes)" } else { "" }
    );
    let _ = writeln!(text, "{:LABEL$}{:04o}", "mode", facts.mode() & 0o7777);
    if let Some(residency) = residency {
        let _ = writeln!(text, "{:LABEL$}{residency}", "residency");
    }
    let _ = match &route {
        Ok(route) => writeln!(text, "{HEADING}route{HEADING:#}\n  {route}"),
        Err(error) => writeln!(text, "{HEADING}route{HEADING:#}\n  none: {error}"),
    };
    Ok(Report::new(object).text(text))
}

/// Plain data of kvik as JSON.
pub(crate) fn as_json(value: &impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(value)
        .map_err(|error| Failure::new(Exit::Failed, "Internal", format!("write JSON: {error}")))
}

/// The width of the label column in the table of [`FileProbe`].
const LABEL: usize = 22;
