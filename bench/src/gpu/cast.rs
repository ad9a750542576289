//! What a case with a device does, and the scene for it.

use std::path::PathBuf;

use kvik::CompatMode;

use super::Rig;
use super::loops::{ListLoop, ListWay, ReadLoop, ReadWay, WriteLoop, WriteWay};
use super::scenes::{
    ListScene, Order, Queued, ReadScene, Reader, StreamScene, WriteScene, list_len,
};
use crate::contender::{Contender, Role};
use crate::data::Data;
use crate::folder::Folder;
use crate::loops::direct;
use crate::machine::is_in_memory;
use crate::ours::{Ours, Wish};
use crate::race::Scene;
use crate::rivals::Job;
use crate::scenes::Cache;
use crate::trouble::{Doing, Outcome, Trouble};

/// Where the bytes of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    PageCache,
    Disk,
    /// A file system that keeps its files in memory.
    Memory,
}

/// What a case with a device does.
#[derive(Clone, Debug)]
pub(crate) enum DeviceKind {
    /// One large read.
    Read {
        from: Storage,
        /// Of the loops.
        threads: Vec<usize>,
        /// Threads of kvik; `None`: what it does when nothing is said.
        wish: Option<usize>,
        /// The mode of kvik, and one by which it takes part a second time.
        modes: Option<[CompatMode; 2]>,
    },
    /// One large read of a mapped file out of the page cache.
    ReadMap { threads: usize },
    /// One large write to a file that is kept in memory.
    Write { threads: usize },
    /// A large read out of the page cache in the order of a stream.
    Stream { what: Queued, threads: usize },
    /// Many small reads out of the page cache.
    List {
        size: usize,
        order: Order,
        threads: usize,
    },
}

impl DeviceKind {
    /// Whether it wants the data in the page cache.
    pub(crate) fn is_hot(&self) -> bool {
        match self {
            Self::Read { from, .. } => *from == Storage::PageCache,
            Self::Write { .. } => false,
            Self::ReadMap { .. } | Self::Stream { .. } | Self::List { .. } => true,
        }
    }

    pub(crate) fn counts_operations(&self) -> bool {
        matches!(self, Self::List { .. })
    }

    /// Whether it wants a file that is kept in memory.
    pub(crate) fn wants_file_in_memory(&self) -> bool {
        match self {
            Self::Read { from, .. } => *from == Storage::Memory,
            Self::Write { .. } => true,
            Self::ReadMap { .. } | Self::Stream { .. } | Self::List { .. } => false,
        }
    }

    /// The same for those who do it in another process, and the file they do it with.
    pub(crate) fn job(&self, data: &Data, rig: &Rig) -> (Job, PathBuf) {
        let path = match (&rig.in_memory, self.wants_file_in_memory()) {
            (Some((_, data)), true) => &data.path,
            _ => &data.path,
        };
        let len = data.len;
        let job = match *self {
            Self::Read { .. } | Self::ReadMap { .. } => Job::DeviceRead,
            Self::Stream { .. } => Job::DeviceStream,
            Self::Write { .. } => Job::DeviceWrite,
            Self::List { size, order, .. } => {
                let list = list_len(len, size, order);
                match order {
                    Order::OneByOne => Job::DeviceSmall { size, list, len },
                    Order::Scattered | Order::Joined => Job::DeviceList { size, list, len },
                }
            }
        };
        (job, path.clone())
    }

    /// The scene of us and the loops.
    pub(crate) fn scene<'a>(
        &self,
        name: &str,
        data: &'a Data,
        rig: &'a mut Rig,
    ) -> Outcome<Box<dyn Scene + 'a>> {
        let gpu = &rig.gpu;
        let by = |threads| Wish {
            threads,
            ..Wish::default()
        };
        let prepare = "get pinned memory to read";
        Ok(match self {
            Self::Read {
                from,
                threads,
                wish,
                modes,
            } => {
                let data = match from {
                    Storage::Memory => file_in_memory(&rig.in_memory)?,
                    Storage::PageCache | Storage::Disk => data,
                };
                let cold = *from == Storage::Disk;
                if cold && is_in_memory(&data.path) {
                    let why = "the files are kept in memory: there is no disk to measure";
                    return Err(Trouble::Unfit(why.into()));
                }
                let direct = cold && direct::possible(&data.path);
                // Where kvik is asked for a number of threads, one slab for each shows what the second is worth.
                let slabs: &[usize] = if cold || wish.is_none() {
                    &[2]
                } else {
                    &[2, 1]
                };
                let ways = read_ways(threads, slabs, direct);
                let loops = ways
                    .into_iter()
                    .map(|(way, threads, slabs)| ReadLoop::new(gpu, way, threads, slabs));
                let loops = loops.collect::<Result<_, _>>();
                let loops = loops.doing(prepare, &data.path)?;
                let cache = if cold { Cache::Cold } else { Cache::Hot };
                let by_mode = |compat| {
                    let wish = Wish {
                        compat,
                        ..by(*wish)
                    };
                    Ours::open(&data.path, &wish).map(Reader::File)
                };
                let mut ours = vec![(Contender::ours(), by_mode(modes.map(|[first, _]| first))?)];
                if let Some([_, second]) = modes {
                    let name = format!("kvik, mode {second}");
                    let contender = Contender::new(Role::Engine, name);
                    ours.push((contender, by_mode(Some(*second))?));
                }
                let device = (&mut rig.memory, &mut rig.checker);
                Box::new(ReadScene::new(name, data, device, cache, ours, loops)?)
            }
            Self::ReadMap { threads } => {
                let ways = [
                    (ReadWay::Mapped, 2),
                    (ReadWay::Mapped, 1),
                    (ReadWay::CopyOnly, 2),
                ];
                let loops = ways.map(|(way, slabs)| ReadLoop::new(gpu, way, *threads, slabs));
                let loops = loops.into_iter().collect::<Result<_, _>>();
                let loops = loops.doing(prepare, &data.path)?;
                let how = kvik::ReadOptions::new().num_threads(*threads);
                let map = kvik::MmapHandle::open(&data.path)?;
                let file = Ours::open(&data.path, &by(Some(*threads)))?;
                let ours = vec![
                    (Contender::ours(), Reader::Map(map, how)),
                    (
                        Contender::new(Role::Engine, "kvik, FileHandle".to_owned()),
                        Reader::File(file),
                    ),
                ];
                let device = (&mut rig.memory, &mut rig.checker);
                let scene = ReadScene::new(name, data, device, Cache::Hot, ours, loops)?;
                Box::new(scene)
            }
            Self::Write { threads } => {
                let data = file_in_memory(&rig.in_memory)?;
                let ways = [WriteWay::Both, WriteWay::CopyOnly, WriteWay::WriteOnly];
                let loops = ways.map(|way| WriteLoop::new(gpu, way, *threads));
                let loops = loops.into_iter().collect::<Result<_, _>>();
                let loops = loops.doing("get pinned memory to write", &data.path)?;
                let ours = Ours::create(&data.path, &by(Some(*threads)))?;
                let device = (&mut rig.memory, &mut rig.checker);
                let scene = WriteScene::new(name, &data.path, data.len, device, ours, loops)?;
                Box::new(scene)
            }
            Self::Stream { what, threads } => {
                let ours = Ours::open_for_streams(&data.path, *threads)?;
                let device = (&rig.memory, &mut rig.checker);
                let scene = StreamScene::new(name, data, device, (gpu, *threads), ours, *what)?;
                Box::new(scene)
            }
            Self::List {
                size,
                order,
                threads,
            } => {
                let ways = match order {
                    Order::Scattered => vec![ListWay::Batched, ListWay::OneByOne],
                    Order::Joined => vec![ListWay::Joined, ListWay::Batched],
                    Order::OneByOne => vec![ListWay::OneByOne],
                };
                let loops = ways
                    .into_iter()
                    .map(|way| ListLoop::new(gpu, way, *size, *threads));
                let loops = loops.collect::<Result<_, _>>();
                let loops = loops.doing(prepare, &data.path)?;
                let ours = Ours::open(&data.path, &by(Some(*threads)))?;
                let device = (&rig.memory, &mut rig.checker);
                Box::new(ListScene::new(
                    name,
                    data,
                    (*size, *order),
                    device,
                    ours,
                    loops,
                )?)
            }
        })
    }
}

/// Way, threads and slabs of each loop that reads, and of the copy alone by the most threads.
fn read_ways(threads: &[usize], slabs: &[usize], direct: bool) -> Vec<(ReadWay, usize, usize)> {
    let mut ways = Vec::new();
    for &threads in threads {
        ways.extend(slabs.iter().map(|&slabs| (ReadWay::Cached, threads, slabs)));
        if direct {
            ways.push((ReadWay::Direct, threads, 2));
        }
    }
    let most = threads.iter().max().copied().unwrap_or(1);
    ways.push((ReadWay::CopyOnly, most, 2));
    ways
}

/// Its bytes change when a case writes to it: those that read it come first.
fn file_in_memory(file: &Option<(Folder, Data)>) -> Outcome<&Data> {
    match file {
        Some((_, data)) => Ok(data),
        None => Err(Trouble::Unfit("no file is kept in memory".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_threads_reads_and_only_the_most_copy_alone() {
        use ReadWay::{Cached, CopyOnly, Direct};
        let hot = [(Cached, 8, 2), (Cached, 8, 1), (CopyOnly, 8, 2)];
        assert_eq!(read_ways(&[8], &[2, 1], false), hot);
        let defaults = [(Cached, 4, 2), (Cached, 16, 2), (CopyOnly, 16, 2)];
        assert_eq!(read_ways(&[4, 16], &[2], false), defaults);
        let cold = [(Cached, 8, 2), (Direct, 8, 2), (CopyOnly, 8, 2)];
        assert_eq!(read_ways(&[8], &[2], true), cold);
    }
}
