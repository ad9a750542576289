//! What the cases of one run share: the folder, the data, the memory, and the growing report.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::data::Data;
use crate::figures::Unit;
use crate::folder::{self, Folder};
use crate::loops::{CHUNK, ReadLoop, WriteLoop};
use crate::machine::{Machine, Others, file_system, is_in_memory};
use crate::memory::Pages;
use crate::options::{Options, Progress};
use crate::ours::{self, Ours};
use crate::race::{self, Scene};
use crate::report::{Case, NotRun, Report};
use crate::scenes::{Cache, ReadScene, SmallScene, WriteScene};
use crate::trouble::{Doing, Outcome, Trouble};

/// One case of a suite.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) title: String,
    /// Its share of the run's time, against the others' shares.
    pub(crate) weight: f64,
    pub(crate) kind: Kind,
}

/// What a case does.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// One large read, to `page_offset` bytes past a page boundary.
    Read {
        cache: Cache,
        page_offset: usize,
        threads: Vec<usize>,
        task_size: Option<u64>,
        ours: Option<usize>,
    },
    /// One large write.
    Write { sync: bool },
    /// Many small reads.
    Small { size: usize },
}

pub(crate) struct Session<'a> {
    pub(crate) options: &'a Options,
    pub(crate) progress: &'a mut dyn FnMut(Progress<'_>),
    pub(crate) stop: &'a AtomicBool,
    /// `None` where the data is a file of somebody else.
    folder: Option<Folder>,
    pub(crate) data: Data,
    pages: Pages,
    /// Of kvik, and of the loops with several.
    pub(crate) threads: usize,
    pub(crate) report: Report,
    others: Others,
}

impl<'a> Session<'a> {
    pub(crate) fn begin(
        options: &'a Options,
        progress: &'a mut dyn FnMut(Progress<'_>),
        stop: &'a AtomicBool,
    ) -> Outcome<Self> {
        if options.rounds == 0 {
            return Err(Trouble::Misuse(
                "the number of rounds must be positive".into(),
            ));
        }
        let threads = ours::threads(options)?;
        let (folder, data, directory, notes) = match &options.file {
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
                let data = Data::make(&folder, size, DATA_TIME, progress, stop)?;
                if data.len < size {
                    notes.push(format!(
                        "{} MiB of data: this disk takes no more in {DATA_TIME:?}",
                        data.len >> 20
                    ));
                }
                let parent = folder.parent().to_owned();
                (Some(folder), data, parent, notes)
            }
        };
        let machine = Machine::look(&directory, data.len, threads);
        let pages =
            Pages::new(data.len as usize + PAGE_OFFSETS).doing("get memory to read", &data.path)?;
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
            folder,
            data,
            pages,
            threads,
            report,
            others: Others::watch(),
        })
    }

    /// Runs every entry that was asked for; an error is one that makes the whole run worthless.
    pub(crate) fn run(&mut self, entries: &[Entry]) -> Outcome<()> {
        let weights: f64 = entries.iter().map(|entry| entry.weight).sum();
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
            let budget = self.options.budget.mul_f64(entry.weight / weights);
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
        let others = self.others.share();
        self.report.machine.others = others;
        let note = worth(&self.report.cases, others);
        self.report.notes.extend(note);
        if let Some(folder) = self.folder {
            folder.remove()?;
        }
        Ok(self.report)
    }

    fn measure(&mut self, entry: &Entry, budget: Duration) -> Outcome<Case> {
        let len = self.data.len as usize;
        let name = entry.name.as_str();
        let Self {
            options,
            data,
            pages,
            threads,
            ..
        } = self;
        let how = ours::how(options.threads, options.task_size);
        let hot = match &entry.kind {
            Kind::Read { cache, .. } => *cache == Cache::Hot,
            Kind::Small { .. } => true,
            Kind::Write { .. } => false,
        };
        if hot {
            data.warm(self.stop)?;
        }
        let mut scene: Box<dyn Scene + '_> = match &entry.kind {
            Kind::Read {
                cache,
                page_offset,
                threads,
                task_size,
                ours,
            } => {
                let chunk = task_size.map_or(CHUNK, |size| size as usize);
                let loops = match cache {
                    Cache::Hot => ReadLoop::hot(chunk, threads, data.seed.is_some()),
                    Cache::Cold if is_in_memory(&data.path) => return Err(no_disk(&data.path)),
                    Cache::Cold => ReadLoop::cold(chunk, threads),
                };
                let how = if ours.is_some() {
                    ours::how(*ours, *task_size)
                } else {
                    how
                };
                let ours = Ours::open(&data.path, how)?;
                Box::new(ReadScene::new(
                    name,
                    data,
                    pages.view_mut(*page_offset, len),
                    *cache,
                    ours,
                    loops,
                )?)
            }
            Kind::Write { sync } => {
                let Some(folder) = &self.folder else {
                    return Err(Trouble::Unfit("files of others are only read".into()));
                };
                let path = folder.path().join("written.bin");
                if *sync && is_in_memory(folder.path()) {
                    return Err(no_disk(&path));
                }
                let ours = Ours::create(&path, how)?;
                let loops = counts(*threads)
                    .into_iter()
                    .map(|threads| WriteLoop { threads })
                    .collect();
                let source = pages.view_mut(0, len.min(MOST_WRITTEN));
                Box::new(WriteScene::new(name, &path, source, *sync, ours, loops)?)
            }
            Kind::Small { size } => Box::new(SmallScene::new(
                name,
                data,
                *size,
                Ours::open(&data.path, how)?,
            )?),
        };
        let unit = if matches!(entry.kind, Kind::Small { .. }) {
            Unit::Operations
        } else {
            Unit::Gigabytes
        };

        let (rounds, progress) = (options.rounds, &mut self.progress);
        let mut each_round = |round| {
            progress(Progress::Round {
                name,
                number: round + 1,
                total: rounds,
            })
        };
        let turns = race::run(scene.as_mut(), rounds, budget, self.stop, &mut each_round)?;

        let contenders = scene.contenders();
        Case::new(name, &entry.title, unit, &contenders, &turns)
            .ok_or_else(|| Trouble::Unfit("the figures are not finite".into()))
    }
}

/// What the figures are worth, where that needs to be said: what others took of the machine moves rates, and where it moved
/// ratios, too, nothing is known.
fn worth(cases: &[Case], others: Option<f64>) -> Option<String> {
    let others = others
        .filter(|&share| share > BUSY)
        .map(|share| format!("others used {:.0} % of this machine's CPUs", share * 100.0));
    let wide = |case: &&Case| case.spread.1 - case.spread.0 > WIDE * case.ratio;
    let wide: Vec<&str> = cases
        .iter()
        .filter(wide)
        .map(|case| case.name.as_str())
        .collect();
    match (wide.is_empty(), others) {
        (true, None) => None,
        (true, Some(others)) => Some(format!(
            "{others} meanwhile: trust the ratios, not the rates"
        )),
        (false, others) => Some(format!(
            "{}the ratios of {} lie far apart: too much else moved to tell, run it again",
            others.map_or_else(String::new, |others| format!("{others} meanwhile, and ")),
            wide.join(", ")
        )),
    }
}

fn no_disk(path: &std::path::Path) -> Trouble {
    Trouble::Unfit(format!(
        "files of {} are kept in memory: there is no disk to measure",
        file_system(path)
    ))
}

/// One thread, and as many as kvik uses.
pub(crate) fn counts(threads: usize) -> Vec<usize> {
    if threads == 1 {
        vec![1]
    } else {
        vec![1, threads]
    }
}

/// Room for a view that does not begin at a page.
const PAGE_OFFSETS: usize = 4096;
// Large enough for any cache, small enough to be written to a slow disk some twenty times within the minute.
const MOST_WRITTEN: usize = 512 << 20;
// Making the data is part of the minute that a run takes.
const DATA_TIME: Duration = Duration::from_secs(8);
// What an idle machine and the kernel's own writing to the disk stay below.
const BUSY: f64 = 0.1;
/// From the least to the greatest ratio of a case, as a share of the median: beyond it the median says nothing about the
/// tenth that we aim at.
const WIDE: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Turn;

    /// A case whose ratios are these.
    fn case(name: &str, ratios: &[f64]) -> Case {
        let turn = |seconds| Turn {
            seconds,
            cpu_seconds: 0.5,
            bytes: 1_000_000_000,
            operations: 1,
        };
        let ours = ratios.iter().map(|ratio| turn(1.0 / ratio)).collect();
        let turns = [ours, vec![turn(1.0); ratios.len()]];
        let contenders = ["kvik", "loop"].map(String::from);
        Case::new(name, "", Unit::Gigabytes, &contenders, &turns).expect("finite")
    }

    #[test]
    fn ratios_are_to_be_trusted_only_where_they_lie_close_together() {
        let close = [case("hot", &[0.95, 1.0, 1.05]), case("cold", &[0.9, 1.0])];
        assert_eq!(worth(&close, None), None);
        assert_eq!(worth(&close, Some(0.05)), None);
        assert_eq!(
            worth(&close, Some(0.4)).as_deref(),
            Some(
                "others used 40 % of this machine's CPUs meanwhile: trust the ratios, not the rates"
            )
        );
        let [hot, cold] = close;
        let apart = [hot, case("write", &[0.6, 1.0, 1.3]), cold];
        assert_eq!(
            worth(&apart, None).as_deref(),
            Some("the ratios of write lie far apart: too much else moved to tell, run it again")
        );
        assert_eq!(
            worth(&apart, Some(0.4)).as_deref(),
            Some(
                "others used 40 % of this machine's CPUs meanwhile, and the ratios of write lie far apart: too much else \
                 moved to tell, run it again"
            )
        );
    }
}
