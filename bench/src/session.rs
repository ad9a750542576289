//! What the cases of one run share: the folder, the data, the memory, and the growing report.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::casting::{Entry, Kind, Stage};
use crate::data::Data;
use crate::figures::Unit;
use crate::folder::{self, Folder};
use crate::gpu::{Gpu, Rig};
use crate::machine::{self, Machine, Others};
use crate::memory::Pages;
use crate::options::{Options, Progress};
use crate::ours;
use crate::race;
use crate::remote::Site;
use crate::report::{Case, NotRun, Report};
use crate::rivals::{Opponents, Peers};
use crate::trouble::{Doing, Outcome, Trouble};
use crate::worth::worth;

pub(crate) struct Session<'a> {
    pub(crate) options: &'a Options,
    pub(crate) progress: &'a mut dyn FnMut(Progress<'_>),
    pub(crate) stop: &'a AtomicBool,
    // An error ends a session where it stands, in the order of these fields: programs that work in a folder go before it.
    /// Other programs, in a comparison.
    opponents: Option<Opponents>,
    /// The server and its guests, in the suite that has them.
    site: Option<Site>,
    /// The device and what belongs to it, in the suite that has one.
    pub(crate) rig: Option<Rig>,
    pub(crate) data: Data,
    pages: Pages,
    /// Of kvik, and of the loops with several.
    pub(crate) threads: usize,
    pub(crate) report: Report,
    others: Others,
    /// `None` where the data is a file of somebody else.
    folder: Option<Folder>,
}

impl<'a> Session<'a> {
    pub(crate) fn begin(
        options: &'a Options,
        peers: Option<&Peers>,
        gpu: Option<Arc<Gpu>>,
        progress: &'a mut dyn FnMut(Progress<'_>),
        stop: &'a AtomicBool,
    ) -> Outcome<Self> {
        // More than anybody waits for, and few enough to be kept in memory.
        const MOST_ROUNDS: usize = 100_000;
        if options.rounds == 0 {
            return Err(Trouble::Misuse(
                "the number of rounds must be positive".into(),
            ));
        }
        if options.rounds > MOST_ROUNDS {
            let many = options.rounds;
            let why = format!("{many} rounds are more than the {MOST_ROUNDS} that are kept");
            return Err(Trouble::Misuse(why));
        }
        let threads = ours::threads(options)?;
        let (folder, data, directory, mut notes) = match &options.file {
            Some(path) => {
                let most = folder::memory_bound(options.size);
                let data = Data::existing(path, most)?;
                let note = format!(
                    "read only, the first {} bytes of {}",
                    data.len,
                    path.display()
                );
                (None, data, path.clone(), vec![note])
            }
            None => {
                let folder = Folder::make(options)?;
                let (size, mut notes) = folder::affordable(options, folder.parent())?;
                let time = if gpu.is_some() {
                    MORE_DATA_TIME
                } else {
                    DATA_TIME
                };
                let data = Data::make(&folder, size, time, progress, stop)?;
                if data.len < size {
                    notes.push(format!(
                        "{} MiB of data: this disk takes no more in {time:?}",
                        data.len >> 20
                    ));
                }
                let parent = folder.parent().to_owned();
                (Some(folder), data, parent, notes)
            }
        };
        let machine = Machine::look(&directory, data.len, threads);
        // Where bytes go to a device, nothing is read into memory of the host.
        let on_host = if gpu.is_some() { 0 } else { data.len as usize };
        let pages = Pages::new(on_host + PAGE_OFFSETS).doing("get memory to read", &data.path)?;
        let rig = gpu.map(|gpu| Rig::set_up(gpu, data.len)).transpose()?;
        let opponents = match (peers, &folder) {
            (Some(peers), Some(folder)) => {
                let device = rig.as_ref().map(|_| options.device);
                Some(Opponents::gather(peers, folder.path(), data.len, device)?)
            }
            _ => None,
        };
        notes.extend(rig.iter().map(Rig::about));
        notes.extend(opponents.iter().flat_map(|all| all.notes.iter().cloned()));
        let helpers = opponents.as_ref().map_or(0.0, Opponents::cpu_seconds);
        let report = Report {
            machine,
            cases: vec![],
            not_run: vec![],
            thresholds: vec![],
            notes,
        };
        Ok(Self {
            options,
            progress,
            stop,
            opponents,
            site: None,
            rig,
            data,
            pages,
            threads,
            report,
            others: Others::watch(helpers),
            folder,
        })
    }

    /// Makes the file that is kept in memory, where an entry that was asked for wants one.
    pub(crate) fn add_file_in_memory(&mut self, entries: &[Entry]) -> Outcome<()> {
        let wants = |entry: &Entry| {
            self.options.wants(&entry.name)
                && matches!(&entry.kind, Kind::Device(kind) if kind.wants_file_in_memory())
        };
        if let Some(rig) = &mut self.rig
            && entries.iter().any(wants)
        {
            let len = self.data.len;
            let notes = rig.add_file_in_memory(self.options, len, self.progress, self.stop)?;
            self.report.notes.extend(notes);
        }
        Ok(())
    }

    /// Lets a server have the data, for the cases that read it from there.
    pub(crate) fn serve(&mut self, peers: &Peers) -> Outcome<()> {
        if let Some(folder) = &self.folder {
            let site = Site::open(peers, folder.path(), &self.data.path, self.data.len)?;
            self.report.notes.extend(site.notes());
            self.site = Some(site);
        }
        Ok(())
    }

    /// Runs every entry that was asked for; an error is one that makes the whole run worthless.
    pub(crate) fn run(&mut self, entries: &[Entry]) -> Outcome<()> {
        let within_budget = entries.iter().filter(|entry| !entry.whole);
        let weights: f64 = within_budget.map(|entry| entry.weight).sum();
        let wanted: Vec<_> = entries
            .iter()
            .filter(|entry| self.options.wants(&entry.name))
            .collect();
        let total = wanted.len();
        for (index, entry) in wanted.into_iter().enumerate() {
            (self.progress)(Progress::Begun {
                name: &entry.name,
                number: index + 1,
                total,
            });
            let budget = if entry.whole {
                Duration::MAX
            } else {
                self.options.budget.mul_f64(entry.weight / weights)
            };
            match self.measure(entry, budget) {
                Ok(case) => {
                    (self.progress)(Progress::Done { case: &case });
                    self.report.cases.push(case);
                }
                Err(trouble) if trouble.ends_only_the_case() => {
                    let reason = trouble.to_string();
                    (self.progress)(Progress::NotRun {
                        name: &entry.name,
                        reason: &reason,
                    });
                    self.report.not_run.push(NotRun {
                        name: entry.name.clone(),
                        reason,
                    });
                }
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(())
    }

    /// Removes the files and hands out the report.
    pub(crate) fn end(mut self) -> Outcome<Report> {
        let helpers = self.opponents.as_ref().map_or(0.0, Opponents::cpu_seconds)
            + self.site.as_ref().map_or(0.0, Site::cpu_seconds);
        let others = self.others.share(helpers);
        self.report.machine.others = others;
        self.report.machine.load_at_the_end = machine::load();
        let note = worth(&self.report.cases, others);
        self.report.notes.extend(note);
        // Workers and server write nothing any more before their folder goes.
        drop(self.opponents);
        drop(self.site);
        if let Some(folder) = self.rig.and_then(Rig::into_folder) {
            folder.remove()?;
        }
        if let Some(folder) = self.folder {
            folder.remove()?;
        }
        Ok(self.report)
    }

    fn measure(&mut self, entry: &Entry, budget: Duration) -> Outcome<Case> {
        if entry.kind.is_hot() {
            self.data.warm(self.stop)?;
        }
        let stage = Stage {
            options: self.options,
            data: &self.data,
            pages: &mut self.pages,
            folder: self.folder.as_ref(),
            threads: self.threads,
            opponents: self.opponents.as_ref(),
            rig: self.rig.as_mut(),
            site: self.site.as_ref(),
        };
        let mut scene = stage.scene(entry, &mut self.report.notes)?;
        let unit = if entry.kind.counts_operations() {
            Unit::Operations
        } else {
            Unit::Gigabytes
        };
        let (name, rounds, progress) = (&entry.name, self.options.rounds, &mut self.progress);
        let mut each_round = |round| {
            progress(Progress::Round {
                name,
                number: round + 1,
                total: rounds,
            })
        };
        let turns = race::run(scene.as_mut(), rounds, budget, self.stop, &mut each_round)?;
        self.report.notes.extend(scene.remarks());
        Case::new(name, &entry.title, unit, &scene.contenders(), &turns)
            .map(|case| case.with_aims(&entry.wanted))
            .ok_or_else(|| Trouble::Unfit("the figures are not finite".into()))
    }
}

/// Room for a view that does not begin at a page.
const PAGE_OFFSETS: usize = 4096;
// Making the data is part of the minute that a run takes.
const DATA_TIME: Duration = Duration::from_secs(8);
/// The same for a device, to which memory brings more in a second than most disks take in these.
const MORE_DATA_TIME: Duration = Duration::from_secs(40);
