//! A remote object to a file: what an earlier copy left is gone on with if it is of the same version of the object.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kvik::config::Config;
use kvik::{ErrorKind, RemoteHandle};
use serde_json::json;

use crate::Exit;
use crate::failure::{Failure, Result, show};
use crate::output::{Output, Report};
use crate::progress::Progress;
use crate::stop::{Stop, stopped};
use crate::units;

use super::fetch::{Record, fetch};
use super::pump::Load;
use super::site::{self, Site};
use super::subject::Subject;
use super::{Flags, destination, mode, name, read_back, verify};

pub(super) fn run(
    url: &str,
    flags: &Flags,
    output: &Output,
    stop: &Stop,
    begun: Instant,
) -> Result<Report> {
    if flags.via_gpu.is_some() {
        return Err(Failure::usage("copy from a URL: --via-gpu is for files"));
    }
    let path = destination::resolve(|| name::of_url(url), &flags.destination)?;
    let object = RemoteHandle::open(url)?;
    let job = Job {
        object: &object,
        subject: Subject::of(url, &object),
        path,
        load: Load::of_requests(&Config::current())?,
        flags,
        output,
        stop,
    };
    let (mut site, anew) = job.begin()?;
    let resumed = site.written.iter().map(|piece| piece.len() as u64).sum();
    let (part, going_on) = (site.part.path().to_owned(), going_on(&site));
    stop.last_words(move |exit| kept(stopped("copy", exit), &part, &going_on));
    if let Err(failure) = job.fill(&mut site) {
        // Before the part is removed, so that nobody is told that it is kept.
        stop.settle();
        return Err(job.give_up(failure, site));
    }
    if let Some(exit) = stop.settle() {
        return Err(job.give_up(stopped("copy", exit), site));
    }
    // Nobody else may open the part before it is what was asked for, and nobody can go on with one that others may open.
    site.part.set_mode(mode::of_new_file())?;
    if !flags.no_sync {
        site.part.handle().sync()?;
    }
    site.publish(&job.path, !flags.no_sync)?;
    Ok(job.told(resumed, anew, begun.elapsed()))
}

struct Job<'a> {
    object: &'a RemoteHandle,
    /// What the copy is of, or why nobody could go on with it.
    subject: Result<Subject, &'static str>,
    path: PathBuf,
    load: Load,
    flags: &'a Flags,
    output: &'a Output,
    stop: &'a Stop,
}

impl Job<'_> {
    /// Where to go on, or a new beginning, with the reason if there was something to go on with.
    fn begin(&self) -> Result<(Site, Option<String>)> {
        let mut anew = None;
        if site::is_taken(&self.path) {
            anew = match self.flags.no_resume {
                true => Some("--no-resume".to_owned()),
                false => match self.take_up()? {
                    Ok(site) => return Ok((site, None)),
                    Err(why) => Some(why),
                },
            };
        }
        let site = Site::create(&self.path, &self.subject)?;
        if let Some(why) = anew.as_ref().filter(|_| !self.flags.no_resume) {
            let left = show(&destination::part_of(&self.path));
            let text = format!("the copy begins anew: {left} was no use, {why}");
            self.output.note(&text);
        }
        Ok((site, anew))
    }

    /// What an earlier copy left, if it still has the bytes that its journal says.
    fn take_up(&self) -> Result<Result<Site, String>> {
        let site = match Site::take_up(&self.path, &self.subject)? {
            Ok(site) => site,
            Err(why) => return Ok(Err(why)),
        };
        let there = site.written.iter().map(|piece| piece.len() as u64).sum();
        let mut progress = Progress::new(self.output, "looking at what is there", there);
        let target = site.part.handle();
        let found =
            read_back::difference(target, &site.written, self.load, self.stop, &mut progress);
        drop(progress);
        match found {
            Ok(None) => {
                let (there, size) = (units::size(there), units::size(self.object.len()));
                let text = format!("an earlier copy is gone on with: {there} of {size} are there");
                self.output.note(&text);
                Ok(Ok(site))
            }
            Ok(Some(piece)) => Ok(Err(format!(
                "bytes {}..{} are not those that were written to it",
                piece.range.start, piece.range.end
            ))),
            // What was read of it was right, and what was not read may be: whatever went wrong, it is worth as much as before.
            Err(failure) => Err(keep(failure, site)),
        }
    }

    fn fill(&self, site: &mut Site) -> Result<()> {
        let (object, flags) = (self.object, self.flags);
        let target = site.part.handle();
        target.set_len(object.len())?;
        let missing = site::missing(&site.written, object.len());
        let left: u64 = missing.iter().map(|range| range.end - range.start).sum();
        let mut progress = Progress::new(self.output, "copying", object.len());
        progress.begin_at(object.len() - left);
        let written = std::mem::take(&mut site.written);
        let mut record = Record::new(target, site.journal.as_mut().ok(), written, !flags.no_sync);
        let fetched = fetch(
            (object, target),
            missing,
            self.load,
            &mut record,
            self.stop,
            &mut progress,
        );
        drop(progress);
        record.note();
        let written = record.written;
        fetched?;
        if !flags.no_sync || flags.verify {
            target.sync()?;
        }
        if flags.verify {
            let mut progress = Progress::new(self.output, "verifying", object.len());
            verify::written(
                target,
                (site.part.path(), object.len()),
                &written,
                self.load,
                self.stop,
                &mut progress,
            )?;
        }
        Ok(())
    }

    /// Keeps what another copy can go on with, and what somebody who stopped us may want to look at; removes all else.
    fn give_up(&self, failure: Failure, site: Site) -> Failure {
        let interrupted = matches!(failure.exit(), Exit::Interrupted | Exit::Terminated);
        let passing = PASSING.iter().any(|kind| failure.is(*kind));
        let keeps = interrupted || passing && site.is_resumable();
        if !keeps {
            return match failure.exit() {
                Exit::NoSpace => {
                    failure.hint(format!("the part was removed: {}", show(site.part.path())))
                }
                _ => failure,
            };
        }
        keep(failure, site)
    }

    fn told(&self, resumed: u64, anew: Option<String>, time: Duration) -> Report {
        let (size, url) = (self.object.len(), self.object.url());
        let there = match resumed {
            0 => String::new(),
            bytes => format!(" ({} were there)", units::size(bytes)),
        };
        let verified = if self.flags.verify { ", verified" } else { "" };
        let text = format!(
            "copied {url} to {}: {}{there} in {}, {}{verified}",
            show(&self.path),
            units::size(size),
            units::time(time),
            units::rate(size - resumed, time),
        );
        Report::new(json!({
            "source": url,
            "destination": self.path.to_string_lossy(),
            "bytes": size,
            "resumed_bytes": resumed,
            "begun_anew": anew,
            "seconds": time.as_secs_f64(),
            "verified": self.flags.verify,
            "synced": !self.flags.no_sync,
        }))
        .remark(text)
    }
}

/// Leaves all that is there, and says where and what for.
fn keep(failure: Failure, site: Site) -> Failure {
    let (part, going_on) = (site.part.path().to_owned(), going_on(&site));
    site.keep();
    kept(failure, &part, &going_on)
}

/// What another copy to the same place would do.
fn going_on(site: &Site) -> String {
    match &site.journal {
        Ok(_) => "the same command goes on with it, --no-resume begins anew".to_owned(),
        Err(why) => format!("another copy to the same place begins anew: {why}"),
    }
}

fn kept(failure: Failure, part: &Path, going_on: &str) -> Failure {
    let hint = format!("the part is kept: {}; {going_on}", show(part));
    failure.fact("part", part.to_string_lossy()).hint(hint)
}

/// What may be over when the same command is given again. The bytes that came before were right.
const PASSING: [ErrorKind; 7] = [
    ErrorKind::Unreachable,
    ErrorKind::TimedOut,
    ErrorKind::Refused,
    ErrorKind::PermissionDenied,
    ErrorKind::BadReply,
    ErrorKind::TooManyOpenFiles,
    ErrorKind::OutOfMemory,
];
