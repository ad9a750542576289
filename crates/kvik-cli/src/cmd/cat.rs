//! `kvik cat`: a file, or a range of it, to standard output.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use kvik::config::Config;
use kvik::{ErrorKind, FileHandle, Pending, RemoteHandle};
use serde_json::json;

use crate::Exit;
use crate::failure::{Failure, Result, show};
use crate::log::Used;
use crate::output::{self, Report};
use crate::span::Span;
use crate::url::{shown, url_of};

/// Print a file or a remote object, or a range of it, to standard output
///
/// Reads ahead in parallel. Files without a size (/proc, growing logs) are read until nothing comes
/// any more; pipes, terminals and standard input are read front to back.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = AFTER)]
pub(crate) struct Flags {
    /// The file, or the URL of an object; `-` is standard input
    path: PathBuf,
    /// Only these bytes: A..B (without B), A-B (with B, as in HTTP) or A+N (N bytes from A)
    ///
    /// A, B and N may have units, as in 1MiB+64KiB; A.. and A- go to the end. What lies beyond
    /// the end is left out.
    #[arg(verbatim_doc_comment, long, value_name = "RANGE")]
    range: Option<Span>,
}

const AFTER: &str = "\
Output:
  Standard output carries the bytes and nothing else; --json and --stats print to standard error.
  When the reader of a pipe goes away, kvik ends quietly with code 0.

Exit codes:
  0 printed, 1 I/O error, 2 wrong arguments, a directory or a socket, 3 no such file, 4 permission denied,
  6 standard output is a file and the disk is full; `kvik --help` has the whole table.

Examples:
  kvik cat --range 1MiB+64KiB data.bin | xxd
  kvik cat --range 0..1KiB https://example.org/data.bin | xxd
  kvik cat --range 0-511 /dev/vda > boot-sector
  zstd -dc data.zst | kvik cat - --range 100.. > rest";

pub(crate) fn run(flags: &Flags) -> Result<Report> {
    let begun = Instant::now();
    let mut sink = Sink::open()?;
    let range = flags.range.unwrap_or_default();
    match print(&flags.path, range, &mut sink) {
        Err(End::Failed(failure)) => return Err(failure),
        // Whoever read has read enough.
        Ok(()) | Err(End::NoReader) => {}
    }
    let report = json!({
        "path": shown(&flags.path),
        "offset": range.start,
        "bytes": sink.written,
        "seconds": begun.elapsed().as_secs_f64(),
    });
    Ok(Report::new(report))
}

/// What a log must not go into.
pub(crate) fn used(flags: &Flags) -> Used {
    Used {
        paths: vec![flags.path.clone()],
        stdin: flags.path == Path::new("-"),
        stdout: true,
    }
}

/// Why printing ended early.
enum End {
    NoReader,
    Failed(Failure),
}

impl<E: Into<Failure>> From<E> for End {
    fn from(error: E) -> Self {
        End::Failed(error.into())
    }
}

fn print(path: &Path, range: Span, sink: &mut Sink) -> Result<(), End> {
    if path == Path::new("-") {
        return forwards(io::stdin().lock(), Path::new("standard input"), range, sink);
    }
    if let Some(url) = url_of(path) {
        let object = RemoteHandle::open(url)?;
        let (offset, length) = range.within(object.len());
        let start = |buffer, offset| object.submit_read(buffer, offset);
        return ahead(&start, offset..offset + length, sink).map(drop);
    }
    // Looked at before it is opened: whoever writes to a FIFO would take a short look for its reader, and go on to lose
    // the bytes when that closes.
    match fs::metadata(path).map(|facts| facts.file_type()) {
        Ok(kind) if kind.is_fifo() => return front_to_back(path, range, sink),
        Ok(kind) if kind.is_socket() => {
            let message = format!(
                "cat {}: it is a socket, which cannot be read by its name",
                show(path)
            );
            return Err(Failure::new(Exit::Usage, "NotSeekable", message).into());
        }
        _ => {}
    }
    let handle = match FileHandle::open(path) {
        Ok(handle) => handle,
        Err(error) if error.kind() == ErrorKind::NotSeekable => {
            return front_to_back(path, range, sink);
        }
        Err(error) => return Err(error.into()),
    };
    let size = handle.len()?;
    let (offset, length) = range.within(size);
    let start = |buffer, offset| handle.submit_read(buffer, offset);
    let after = ahead(&start, offset..offset + length, sink)?;
    if range.end.is_some_and(|end| end <= after) || after < offset + length {
        return Ok(());
    }
    match until_nothing_comes(&handle, after.max(range.start), range.end, sink) {
        Err(End::Failed(failure)) if failure.is(ErrorKind::NotSeekable) && sink.written == 0 => {
            front_to_back(path, range, sink)
        }
        other => other,
    }
}

/// Reads the pieces of a range in parallel and prints them in order. Returns where it ended: a file that became shorter
/// ends early.
fn ahead(
    start: &dyn Fn(Vec<u8>, u64) -> Pending<Vec<u8>>,
    range: Range<u64>,
    sink: &mut Sink,
) -> Result<u64, End> {
    let config = Config::current();
    let piece = config.task_size()?.bytes().clamp(SMALLEST, LARGEST);
    let depth = (config.num_threads()? + 1)
        .min((BUDGET / piece) as usize)
        .max(2);
    let mut flying: VecDeque<(usize, Pending<Vec<u8>>)> = VecDeque::with_capacity(depth);
    let mut spare: Vec<Vec<u8>> = Vec::new();
    let mut next = range.start;
    let mut printed = range.start;
    loop {
        while next < range.end && flying.len() < depth {
            // At most `LARGEST`, so it is a `usize`.
            let length = (range.end - next).min(piece) as usize;
            let mut buffer = spare.pop().unwrap_or_default();
            buffer.resize(length, 0);
            flying.push_back((length, start(buffer, next)));
            next += length as u64;
        }
        let Some((length, pending)) = flying.pop_front() else {
            return Ok(printed);
        };
        let (read, buffer) = pending.finish();
        let read = read?;
        sink.write(&buffer[..read])?;
        printed += read as u64;
        if read < length {
            return Ok(printed);
        }
        spare.push(buffer);
    }
}

/// Reads on from `offset` where nobody knows how much there is.
fn until_nothing_comes(
    handle: &FileHandle,
    mut offset: u64,
    end: Option<u64>,
    sink: &mut Sink,
) -> Result<(), End> {
    let mut buffer = vec![0; SMALLEST as usize];
    loop {
        let wanted = end.map_or(SMALLEST, |end| end.saturating_sub(offset).min(SMALLEST)) as usize;
        if wanted == 0 {
            return Ok(());
        }
        let read = handle.read_at(&mut buffer[..wanted], offset)?;
        if read == 0 {
            return Ok(());
        }
        sink.write(&buffer[..read])?;
        offset += read as u64;
    }
}

/// A FIFO or a terminal: opening it waits for a writer, as everywhere.
fn front_to_back(path: &Path, range: Span, sink: &mut Sink) -> Result<(), End> {
    let file = File::open(path).map_err(|error| Failure::io("open", path, &error))?;
    forwards(file, path, range, sink)
}

fn forwards(mut source: impl Read, path: &Path, range: Span, sink: &mut Sink) -> Result<(), End> {
    let mut buffer = vec![0; 256 << 10];
    let mut position = 0_u64;
    while range.end.is_none_or(|end| position < end) {
        let wanted = range.end.map_or(buffer.len() as u64, |end| {
            (end - position).min(buffer.len() as u64)
        });
        let read = match source.read(&mut buffer[..wanted as usize]) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::io("read", path, &error).into()),
        };
        // Bytes before the range have to be read, too.
        let skip = range.start.saturating_sub(position).min(read as u64) as usize;
        sink.write(&buffer[skip..read])?;
        position += read as u64;
    }
    Ok(())
}

/// Standard output without the line buffer of the standard library, and how much went there.
struct Sink {
    file: File,
    written: u64,
}

impl Sink {
    fn open() -> Result<Self> {
        let owned = io::stdout().as_fd().try_clone_to_owned();
        let file = File::from(owned.map_err(|error| output::stdout_failure(&error))?);
        Ok(Sink { file, written: 0 })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), End> {
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.written += bytes.len() as u64;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(End::NoReader),
            Err(error) => Err(output::stdout_failure(&error)
                .fact("done", self.written)
                .into()),
        }
    }
}

// Pieces are as large as tasks, within reason, and all buffers together stay small.
const SMALLEST: u64 = 1 << 20;
const LARGEST: u64 = 32 << 20;
const BUDGET: u64 = 128 << 20;
