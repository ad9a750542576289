//! What a case does, and the scene for it: who takes part here, on this data, in this memory.

use std::path::Path;

use kvik::EngineKind;

use crate::contender::{Contender, Role};
use crate::data::Data;
use crate::folder::Folder;
use crate::gpu::{DeviceKind, Rig};
use crate::loops::{CHUNK, FreshLoop, ReadLoop, direct};
use crate::machine::{file_system, is_in_memory};
use crate::memory::Pages;
use crate::options::Options;
use crate::our_map::OurMap;
use crate::ours::{self, Ours, Wish};
use crate::race::Scene;
use crate::remote::{RemoteKind, Site};
use crate::report::Wanted;
use crate::rivals::{Against, Job, Opponents};
use crate::scenes::{
    Cache, FreshScene, Joined, ListScene, ReadScene, Reads, SmallScene, WriteScene, WriteWay,
};
use crate::trouble::{Outcome, Trouble};

/// One case of a suite.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) title: String,
    /// Its share of the run's time, against the others' shares.
    pub(crate) weight: f64,
    /// Whether every turn moves all of the data, however long that takes.
    pub(crate) whole: bool,
    pub(crate) kind: Kind,
    /// Other programs that take part, where they are there.
    pub(crate) against: Vec<Against>,
    pub(crate) wanted: Vec<Wanted>,
}

/// What a case does.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// One large read, to `page_offset` bytes past a page boundary.
    Read {
        cache: Cache,
        page_offset: usize,
        /// Of the loops.
        threads: Vec<usize>,
        /// `None`: what the options of the run say.
        wish: Option<Wish>,
        /// Engines that kvik is held to beside its own choice.
        engines: Vec<EngineKind>,
    },
    /// One large read out of a map, hot, to `page_offset` bytes past a page boundary.
    Map {
        page_offset: usize,
        /// Of everybody.
        threads: usize,
        /// Whether the file is mapped for this one read, or stays mapped.
        once: bool,
    },
    /// One large read into memory that is allocated for it.
    Fresh,
    /// One large write.
    Write {
        way: WriteWay,
        engines: Vec<EngineKind>,
    },
    /// Many small reads, one after the other.
    Small { size: usize },
    /// Many small reads in one call.
    List { size: usize, past_the_cache: bool },
    /// To or from memory of a device.
    Device(DeviceKind),
    /// An object of a server.
    Remote(RemoteKind),
}

impl Kind {
    /// Whether it wants the data in the page cache.
    pub(crate) fn is_hot(&self) -> bool {
        match self {
            Self::Read { cache, .. } => *cache == Cache::Hot,
            Self::Map { .. } | Self::Fresh | Self::Small { .. } => true,
            Self::List { past_the_cache, .. } => !past_the_cache,
            Self::Write { .. } => false,
            Self::Device(kind) => kind.is_hot(),
            // Whatever the server has to do is done before.
            Self::Remote(_) => true,
        }
    }

    pub(crate) fn counts_operations(&self) -> bool {
        match self {
            Self::Small { .. } | Self::List { .. } => true,
            Self::Device(kind) => kind.counts_operations(),
            Self::Remote(kind) => kind.counts_operations(),
            Self::Read { .. } | Self::Map { .. } | Self::Fresh | Self::Write { .. } => false,
        }
    }
}

/// What there is to make a scene of.
pub(crate) struct Stage<'a> {
    pub(crate) options: &'a Options,
    pub(crate) data: &'a Data,
    pub(crate) pages: &'a mut Pages,
    /// `None` where the data is a file of somebody else.
    pub(crate) folder: Option<&'a Folder>,
    pub(crate) threads: usize,
    pub(crate) opponents: Option<&'a Opponents>,
    /// The device, where the suite has one.
    pub(crate) rig: Option<&'a mut Rig>,
    /// The server, where the suite has one.
    pub(crate) site: Option<&'a Site>,
}

impl<'a> Stage<'a> {
    /// The scene of `entry`. Whoever cannot take part here goes into the notes.
    pub(crate) fn scene(
        self,
        entry: &Entry,
        notes: &mut Vec<String>,
    ) -> Outcome<Box<dyn Scene + 'a>> {
        if let Kind::Remote(kind) = &entry.kind {
            let site = self.site.ok_or_else(no_server)?;
            return kind.scene(&entry.name, self.data, self.pages, site, notes);
        }
        let (data, opponents) = (self.data, self.opponents);
        let len = data.len;
        let written = self.folder.map(|folder| folder.path().join(WRITTEN));
        let (job, path) = match &entry.kind {
            Kind::Read { page_offset, .. } => {
                let page_offset = *page_offset;
                (Job::Read { page_offset }, data.path.clone())
            }
            Kind::Map {
                page_offset, once, ..
            } => {
                let (page_offset, once) = (*page_offset, *once);
                (Job::Map { page_offset, once }, data.path.clone())
            }
            Kind::Fresh => (Job::Fresh, data.path.clone()),
            Kind::Write { way, .. } => {
                let sync = *way == WriteWay::Synced;
                let path = written.unwrap_or_else(|| data.path.clone());
                (Job::Write { sync }, path)
            }
            Kind::Small { size } => (Job::Small { size: *size, len }, data.path.clone()),
            Kind::List { size, .. } => (Job::List { size: *size, len }, data.path.clone()),
            Kind::Device(kind) => match &self.rig {
                Some(rig) => kind.job(data, rig),
                None => return Err(no_device()),
            },
            Kind::Remote(_) => return Err(no_server()),
        };
        let scene = self.own(entry)?;
        let (Some(opponents), Some(seed)) = (opponents, data.seed) else {
            return Ok(scene);
        };
        let (rivals, absent) = opponents.rivals(&entry.against, &job, &path, seed);
        notes.extend(absent.iter().map(|why| format!("{}: {why}", entry.name)));
        Ok(Box::new(Joined {
            name: entry.name.clone(),
            scene,
            rivals,
        }))
    }

    /// The scene of us and the loops.
    fn own(self, entry: &Entry) -> Outcome<Box<dyn Scene + 'a>> {
        let (name, data) = (entry.name.as_str(), self.data);
        let len = data.len as usize;
        let wish = Wish::of(self.options);
        let counts = counts(self.threads);
        Ok(match &entry.kind {
            Kind::Read {
                cache,
                page_offset,
                threads,
                wish: own,
                engines,
            } => {
                let wish = own.as_ref().unwrap_or(&wish);
                let chunk = wish.task_size.map_or(CHUNK, |size| size as usize);
                let loops = match cache {
                    Cache::Hot => ReadLoop::hot(chunk, threads, data.seed.is_some()),
                    Cache::Cold if is_in_memory(&data.path) => return Err(no_disk(&data.path)),
                    Cache::Cold => {
                        let direct = *page_offset == 0 && direct::possible(&data.path);
                        ReadLoop::cold(chunk, threads, direct)
                    }
                };
                let ours = each_engine(wish, engines, |wish| Ours::open(&data.path, wish))?;
                let ours = ours
                    .into_iter()
                    .map(|(who, ours)| (who, Box::new(ours) as _));
                let target = self.pages.view_mut(*page_offset, len);
                let ours = ours.collect();
                Box::new(ReadScene::new(name, data, target, *cache, ours, loops)?)
            }
            Kind::Map {
                page_offset,
                threads,
                once,
            } => {
                let loops = ReadLoop::mapped(*threads, *once, data.seed.is_some());
                let ours: Box<dyn Reads> = Box::new(OurMap::new(&data.path, *threads, *once)?);
                let ours = vec![(Contender::ours(), ours)];
                let target = self.pages.view_mut(*page_offset, len);
                Box::new(ReadScene::new(name, data, target, Cache::Hot, ours, loops)?)
            }
            Kind::Fresh => {
                let ours = Ours::open(&data.path, &wish)?;
                Box::new(FreshScene::new(name, data, ours, FreshLoop::all(&counts)))
            }
            Kind::Write { way, engines } => {
                let Some(folder) = self.folder else {
                    return Err(Trouble::Unfit("files of others are only read".into()));
                };
                let path = folder.path().join(WRITTEN);
                if *way != WriteWay::Cached && is_in_memory(folder.path()) {
                    return Err(no_disk(&path));
                }
                let wish = if *way == WriteWay::Direct {
                    wish.only(ours::engine(DIRECT)?)
                } else {
                    wish
                };
                let ours = each_engine(&wish, engines, |wish| Ours::create(&path, wish))?;
                let source = self.pages.view_mut(0, len.min(MOST_WRITTEN));
                Box::new(WriteScene::new(name, &path, source, *way, ours, &counts)?)
            }
            Kind::Small { size } => {
                let ours = Ours::open(&data.path, &wish)?;
                Box::new(SmallScene::new(name, data, *size, ours)?)
            }
            Kind::List {
                size,
                past_the_cache,
            } => {
                if *past_the_cache && is_in_memory(&data.path) {
                    return Err(no_disk(&data.path));
                }
                let ours = if *past_the_cache {
                    past_the_cache_by(&data.path, &wish)?
                } else {
                    vec![(Contender::ours(), Ours::open(&data.path, &wish)?)]
                };
                let scene = ListScene::new(name, data, *size, *past_the_cache, ours, &counts)?;
                Box::new(scene)
            }
            Kind::Device(kind) => match self.rig {
                Some(rig) => kind.scene(name, data, rig)?,
                None => return Err(no_device()),
            },
            Kind::Remote(_) => return Err(no_server()),
        })
    }
}

/// kvik as it is wished for, then held to one engine after the other.
fn each_engine(
    wish: &Wish,
    engines: &[EngineKind],
    open: impl Fn(&Wish) -> Outcome<Ours>,
) -> Outcome<Vec<(Contender, Ours)>> {
    let mut all = vec![(Contender::ours(), open(wish)?)];
    for &engine in engines {
        let name = format!("kvik, engine {engine}");
        // An engine that cannot take this file leaves the case to the others.
        if let Ok(ours) = open(&wish.only(engine)) {
            all.push((Contender::new(Role::Engine, name), ours));
        }
    }
    Ok(all)
}

fn no_server() -> Trouble {
    Trouble::Unfit("this suite has no server".into())
}

fn no_device() -> Trouble {
    Trouble::Unfit("this suite has no device".into())
}

/// Lists past the page cache, and those that find it empty.
fn past_the_cache_by(path: &Path, wish: &Wish) -> Outcome<Vec<(Contender, Ours)>> {
    let direct = Contender::new(Role::Ours, "kvik direct ranges");
    let ring = Contender::new(Role::Engine, "kvik, engine uring");
    Ok(vec![
        (direct, Ours::open(path, &wish.only(ours::engine(DIRECT)?))?),
        (ring, Ours::open(path, &wish.only(ours::engine(RING)?))?),
    ])
}

fn no_disk(path: &Path) -> Trouble {
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

/// The file that is written, in the folder of the run.
const WRITTEN: &str = "written.bin";
/// The names of engines that some cases are about.
const DIRECT: &str = "direct";
const RING: &str = "uring";
// Large enough for any cache, small enough to be written to a slow disk some twenty times within the minute.
const MOST_WRITTEN: usize = 512 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kvik_is_held_to_every_engine_of_the_list_and_comes_first() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let open = |wish: &Wish| Ours::open(file.path(), wish);
        let all = each_engine(&Wish::default(), EngineKind::ALL, open).expect("opened");
        assert_eq!(all.len(), 1 + EngineKind::ALL.len());
        assert_eq!(all[0].0, Contender::ours());
        assert_eq!(all[1].0.name, "kvik, engine posix");
    }

    #[test]
    fn lists_past_the_page_cache_are_about_the_engine_that_goes_past_it() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").expect("a temporary file");
        let all = past_the_cache_by(file.path(), &Wish::default()).expect("opened");
        let names: Vec<_> = all.iter().map(|(contender, _)| &*contender.name).collect();
        assert_eq!(names, ["kvik direct ranges", "kvik, engine uring"]);
        assert_eq!(all[0].0.role, Role::Ours);
    }

    #[test]
    fn one_thread_is_not_counted_twice() {
        assert_eq!((counts(1), counts(8)), (vec![1], vec![1, 8]));
    }
}
