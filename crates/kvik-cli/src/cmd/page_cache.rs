//! `kvik page-cache`: how much of a file is cached, and how to get it out.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use kvik::{FileHandle, page_cache_info};
use serde_json::json;

use crate::failure::{Result, show};
use crate::output::Report;
use crate::span::Span;
use crate::units;

/// Show or drop the cached pages of a file, or of the whole machine
// Without these two, a missing subcommand prints the help, of which --json has nothing to say.
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = false)]
pub(crate) struct Flags {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Info(InfoFlags),
    Drop(DropFlags),
}

/// Show how much of a file is in the page cache
///
/// The kernel tells only who owns the file or may write to it.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = INFO_AFTER)]
struct InfoFlags {
    /// The file
    path: PathBuf,
    /// Only these bytes: A..B, A-B (B included) or A+N; widened to whole pages
    #[arg(long, value_name = "RANGE")]
    range: Option<Span>,
}

/// Drop the cached pages of a file, or of the whole machine
///
/// Dirty pages are written out first, since they cannot be dropped. Pages that somebody uses stay.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = DROP_AFTER)]
struct DropFlags {
    /// The file
    #[arg(required_unless_present = "system")]
    path: Option<PathBuf>,
    /// Only pages that lie wholly in these bytes: A..B, A-B (B included) or A+N
    #[arg(long, value_name = "RANGE", conflicts_with = "system")]
    range: Option<Span>,
    /// Everything that the machine has cached; needs root, or sudo without a password
    #[arg(long, conflicts_with = "path")]
    system: bool,
    /// With --system: keep cached names and attributes, drop the contents of files only
    #[arg(long, requires = "system")]
    keep_names: bool,
    /// Do not write dirty pages out first; they then stay
    #[arg(long)]
    no_sync: bool,
}

const INFO_AFTER: &str = "\
Exit codes:
  0 shown, 2 a directory or a pipe, 3 no such file, 4 permission denied, or the kernel does not tell
  this user; `kvik --help` has the whole table.

Examples:
  kvik page-cache info data.bin
  kvik page-cache info --range 0+1GiB data.bin --json | jq .resident_pages";

const DROP_AFTER: &str = "\
Exit codes:
  0 dropped, 2 a directory or a pipe, 3 no such file, 4 permission denied; `kvik --help` has the
  whole table.

Examples:
  kvik page-cache drop data.bin
  sudo kvik page-cache drop --system";

pub(crate) fn run(flags: &Flags) -> Result<Report> {
    match &flags.action {
        Action::Info(flags) => info(flags),
        Action::Drop(flags) => match &flags.path {
            Some(path) => drop_file(path, flags),
            None => drop_system(flags),
        },
    }
}

fn info(flags: &InfoFlags) -> Result<Report> {
    let path = &flags.path;
    // Past any end there are 0 of 0 pages, which is what an empty range has.
    let (offset, length) = region(path, flags.range)?.unwrap_or((u64::MAX, 0));
    let info = page_cache_info(path.as_path(), offset, length)?;
    let (resident, total, page_size) = (info.resident_pages, info.total_pages, info.page_size);
    let mut text = format!("{}: {resident} of {total} pages cached", show(path));
    // A file without a size has no pages, and no share of them is cached.
    if total > 0 {
        text.push_str(&format!(
            " ({}), {} of {}",
            units::percent(resident, total),
            units::size(resident * page_size),
            units::size(total * page_size),
        ));
    }
    Ok(Report::new(json!({
        "path": path.to_string_lossy(),
        "resident_pages": resident,
        "total_pages": total,
        "page_size": page_size,
    }))
    .text(text))
}

fn drop_file(path: &Path, flags: &DropFlags) -> Result<Report> {
    if let Some((offset, length)) = region(path, flags.range)? {
        kvik::drop_file_page_cache(path, offset, length, !flags.no_sync)?;
    }
    // What is left is worth telling, but not everybody may know it.
    let left = page_cache_info(path, 0, 0).ok();
    let text = match left {
        Some(left) => format!(
            "{}: {} of {} pages are still cached",
            show(path),
            left.resident_pages,
            left.total_pages
        ),
        None => format!("{}: dropped", show(path)),
    };
    Ok(Report::new(json!({
        "path": path.to_string_lossy(),
        "resident_pages": left.map(|left| left.resident_pages),
        "total_pages": left.map(|left| left.total_pages),
    }))
    .text(text))
}

fn drop_system(flags: &DropFlags) -> Result<Report> {
    kvik::drop_system_page_cache(!flags.keep_names, !flags.no_sync)?;
    Ok(
        Report::new(json!({ "system": true, "kept_names": flags.keep_names }))
            .text("the page cache of this machine was dropped".to_owned()),
    )
}

/// Offset and length as kvik wants them, where length 0 means to the end; `None` for a range without bytes.
fn region(path: &Path, range: Option<Span>) -> Result<Option<(u64, u64)>> {
    let Some(range) = range else {
        return Ok(Some((0, 0)));
    };
    let (offset, length) = range.within(FileHandle::open(path)?.len()?);
    Ok((length > 0).then_some((offset, length)))
}
