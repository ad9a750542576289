//! `kvik copy`: one file to another place, in parallel, whole or not at all.
//!
//! ```text
//! open source -> resolve destination -> part -> pump (or stream) -> verify -> mode -> sync -> unchanged? -> rename
//! ```

mod destination;
mod fetch;
mod help;
mod journal;
mod leftover;
mod medium;
mod mode;
mod name;
mod part;
mod pieces;
mod pump;
mod read_back;
mod remote;
mod site;
mod snapshot;
mod source;
mod stream;
mod subject;
mod verify;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use kvik::FileHandle;
use kvik::config::Config;
use serde_json::json;

use crate::Exit;
use crate::failure::{Failure, Result, show};
use crate::log::Used;
use crate::output::{Output, Report};
use crate::progress::Progress;
use crate::stop::{Patience, Stop, stopped};
use crate::units;
use crate::url::url_of;

use medium::{Device, DeviceMedium, HostMedium, Medium};
use part::Part;
use pieces::Pieces;
use pump::Load;
use snapshot::Snapshot;

/// Copy a file or a remote object, in parallel, whole or not at all
///
/// The bytes go to DST.kvik-part, which takes the place of DST only when all of them are there,
/// flushed to the storage, and SRC did not change meanwhile. So DST is either what it was or the
/// whole copy. Sparse files stay sparse, the permission bits are those of SRC (of a URL: those of any
/// new file), and an existing DST is replaced.
///
/// A copy from a URL that ended early is gone on with by the same command.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = help::AFTER)]
pub(crate) struct Flags {
    /// The file or block device to copy, or the URL of an object
    #[arg(value_name = "SRC")]
    source: PathBuf,
    /// The new file, or a directory to put it into under its own name
    #[arg(value_name = "DST")]
    destination: PathBuf,
    /// Read the copy back from the storage and compare it with SRC, byte for byte
    ///
    /// The page cache of the copy is dropped first, so that the storage answers and not the
    /// memory (on tmpfs they are the same). DST appears only if nothing differs.
    ///
    /// Of a URL it is compared with the bytes as they came, by a checksum (CRC-32) of each piece:
    /// that the storage has what kvik received. SRC is not fetched a second time.
    #[arg(verbatim_doc_comment, long)]
    verify: bool,
    /// Do not wait until the copy is safe on the storage
    ///
    /// Without it a power cut after `kvik copy` cannot lose the file.
    #[arg(verbatim_doc_comment, long)]
    no_sync: bool,
    /// Begin a copy from a URL anew, and remove what an earlier one has left
    #[arg(long)]
    no_resume: bool,
    /// Let the bytes go through the memory of a GPU, by its number [0], and verify them as --verify
    ///
    /// From SRC to the GPU and from there to DST, as a program moves them that works there: a
    /// check of the whole way.
    #[arg(
        verbatim_doc_comment,
        long,
        value_name = "DEVICE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0"
    )]
    via_gpu: Option<Device>,
}

impl Flags {
    fn verifies(&self) -> bool {
        self.verify || self.via_gpu.is_some()
    }
}

pub(crate) fn run(flags: &Flags, output: &Output, stop: &Stop) -> Result<Report> {
    let begun = Instant::now();
    stop.listen("copy", Patience::Ends)?;
    refuse_streams(flags)?;
    if let Some(device) = flags.via_gpu {
        device.present()?;
    }
    if let Some(url) = url_of(&flags.source) {
        return remote::run(url, flags, output, stop, begun);
    }
    let source = source::open(&flags.source)?;
    let before = Snapshot::take(&source, &flags.source)?;
    let name = || destination::name_of(&flags.source);
    let path = destination::resolve(name, &flags.destination)?;
    destination::refuse_itself(&before, &flags.source, &path)?;
    let part = Part::create(&path)?;
    let name = part.path().to_owned();
    stop.last_words(move |exit| kept(stopped("copy", exit), &name));
    let job = Job {
        source: &source,
        source_path: &flags.source,
        before,
        part: &part,
        stop,
        output,
    };
    let copied = match job.fill(flags) {
        Ok(copied) => copied,
        Err(failure) => {
            // Before the part is removed, so that nobody is told that it is kept.
            stop.settle();
            return Err(give_up(failure, part));
        }
    };
    if let Some(exit) = stop.settle() {
        return Err(give_up(stopped("copy", exit), part));
    }
    part.publish(&path, !flags.no_sync)?;
    Ok(told(flags, &path, &copied, begun.elapsed()))
}

/// What a log must not go into.
pub(crate) fn used(flags: &Flags) -> Used {
    let mut paths = vec![flags.source.clone(), flags.destination.clone()];
    let name = match url_of(&flags.source) {
        Some(url) => name::of_url(url).ok(),
        None => destination::name_of(&flags.source).ok(),
    };
    paths.extend(name.map(|name| flags.destination.join(name)));
    let parts: Vec<PathBuf> = paths[1..]
        .iter()
        .flat_map(|path| [destination::part_of(path), destination::journal_of(path)])
        .collect();
    paths.extend(parts);
    Used {
        paths,
        ..Used::default()
    }
}

/// What is needed to fill a part and to know that it is right.
struct Job<'a> {
    source: &'a FileHandle,
    source_path: &'a Path,
    before: Snapshot,
    part: &'a Part,
    stop: &'a Stop,
    output: &'a Output,
}

/// What was done.
struct Copied {
    /// The length of the file.
    size: u64,
    /// Bytes really moved, without the holes.
    data: u64,
}

impl Job<'_> {
    fn fill(&self, flags: &Flags) -> Result<Copied> {
        let size = self.before.size;
        let load = Load::from(&Config::current())?;
        let target = self.part.handle();
        let mut progress = Progress::new(self.output, "copying", size);
        let copied = match flags.via_gpu {
            None => self.transfer(HostMedium::new(load.piece), load, flags, &mut progress),
            Some(device) => self.transfer(DeviceMedium::new(device), load, flags, &mut progress),
        }?;
        drop(progress);
        if flags.verifies() && size > 0 {
            target.sync()?;
            self.verify(copied.size, load)?;
        }
        // Nobody else may open the part before it is what was asked for.
        self.part.set_mode(self.before.mode)?;
        if !flags.no_sync {
            target.sync()?;
        }
        self.before.compare(self.source, self.source_path)?;
        Ok(copied)
    }

    /// Moves the bytes, through this memory.
    fn transfer(
        &self,
        medium: impl Medium,
        load: Load,
        flags: &Flags,
        progress: &mut Progress,
    ) -> Result<Copied> {
        let (size, target) = (self.before.size, self.part.handle());
        if !self.made_while_read() {
            // The length first: what is never written stays a hole.
            target.set_len(size)?;
            let pieces = Pieces::new(vec![self.source.clone()], size, load.piece);
            let files = (self.source, target);
            let data = pump::copy(files, medium, pieces, load.depth, self.stop, progress)?;
            return Ok(Copied { size, data });
        }
        let data = stream::copy(self.source, target, medium, self.stop, progress)?;
        if flags.verifies() && size == 0 && data > 0 {
            return Err(Failure::usage(format!(
                "verify {}: it has no size, so its bytes may differ at each reading",
                show(self.source_path)
            )));
        }
        Ok(Copied { size: data, data })
    }

    /// Whether the size cannot be believed: files of /proc have bytes and no size, those of /sys have a size of one page,
    /// whatever they hold. A small file is as well read front to back, unless it is one hole.
    fn made_while_read(&self) -> bool {
        let size = self.before.size;
        let holds_data = || {
            self.source
                .data_extents(0..size)
                .is_ok_and(|extents| !extents.is_empty())
        };
        size == 0 || size <= 4096 && holds_data()
    }

    fn verify(&self, size: u64, load: Load) -> Result<()> {
        let target = self.part.handle();
        let mut progress = Progress::new(self.output, "verifying", size);
        verify::from_storage(
            self.source,
            target,
            self.part.path(),
            size,
            load,
            self.stop,
            &mut progress,
        )
        // A source that changed explains any difference, and is the better answer.
        .map_err(|failure| {
            self.before
                .compare(self.source, self.source_path)
                .err()
                .unwrap_or(failure)
        })
    }
}

/// Without names there are no offsets to read at in parallel, and no place for a part.
fn refuse_streams(flags: &Flags) -> Result<()> {
    if flags.source == Path::new("-") {
        return Err(Failure::usage(
            "copy -: standard input cannot be read at several places at once",
        )
        .hint("`kvik cat - > FILE` reads it from front to back; `./-` names a file called -"));
    }
    if flags.destination == Path::new("-") {
        return Err(Failure::usage(
            "copy to -: standard output cannot be written at several places at once",
        )
        .hint("`kvik cat SRC` prints a file; `./-` names a file called -"));
    }
    Ok(())
}

/// Removes the part, or keeps it where somebody stopped us and may want to look at it, and says which.
fn give_up(failure: Failure, part: Part) -> Failure {
    let path = part.path().to_owned();
    match failure.exit() {
        Exit::Interrupted | Exit::Terminated => {
            part.keep();
            kept(failure, &path)
        }
        Exit::NoSpace => failure.hint(format!("the part was removed: {}", show(&path))),
        _ => failure,
    }
}

fn kept(failure: Failure, part: &Path) -> Failure {
    let hint = format!(
        "the part is kept: {}; another copy to the same place begins anew",
        show(part)
    );
    failure.fact("part", part.to_string_lossy()).hint(hint)
}

fn told(flags: &Flags, path: &Path, copied: &Copied, time: Duration) -> Report {
    let verified = if flags.verifies() { ", verified" } else { "" };
    let device = flags.via_gpu.map(|Device(ordinal)| ordinal);
    let way = device.map_or_else(String::new, |ordinal| format!(" through GPU {ordinal}"));
    let holes = match copied.size - copied.data {
        0 => String::new(),
        bytes => format!(", {} of it holes", units::size(bytes)),
    };
    let text = format!(
        "copied {} to {}{way}: {}{holes} in {}, {}{verified}",
        show(&flags.source),
        show(path),
        units::size(copied.size),
        units::time(time),
        units::rate(copied.data, time),
    );
    Report::new(json!({
        "source": flags.source.to_string_lossy(),
        "destination": path.to_string_lossy(),
        "bytes": copied.size,
        "data_bytes": copied.data,
        "hole_bytes": copied.size - copied.data,
        "seconds": time.as_secs_f64(),
        "verified": flags.verifies(),
        "device": device,
        "synced": !flags.no_sync,
    }))
    .remark(text)
}
