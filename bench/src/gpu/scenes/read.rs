//! One large read from the start of a file into memory of the device.

use std::fs::File;

use kvik::Target;

use crate::contender::Contender;
use crate::data::{Data, STEP};
use crate::gpu::loops::{ReadLoop, ReadWay};
use crate::gpu::{Checker, DeviceMemory};
use crate::loops::direct;
use crate::memory::FileWindow;
use crate::ours::{self, Ours};
use crate::pattern;
use crate::race::{Amounts, Moved, Scene};
use crate::scenes::Cache;
use crate::trouble::{Doing, Outcome, Trouble};

pub(crate) struct ReadScene<'a> {
    name: String,
    data: &'a Data,
    /// The data past the page cache, where a loop goes there.
    direct: Option<File>,
    /// A map of the data, where a loop goes by it.
    map: Option<FileWindow>,
    memory: &'a mut DeviceMemory,
    checker: &'a mut Checker,
    cache: Cache,
    ours: Vec<(Contender, Reader)>,
    loops: Vec<ReadLoop>,
}

/// By which door kvik reads.
pub(crate) enum Reader {
    File(Ours),
    Map(kvik::MmapHandle, kvik::ReadOptions),
}

impl Reader {
    fn read_to(&self, target: Target<'_>) -> Outcome<()> {
        match self {
            Self::File(ours) => ours.read_to(target, 0),
            Self::Map(map, how) => {
                let len = target.len();
                let count = map.read_at_with(target, 0, how)?;
                ours::whole(count, len)
            }
        }
    }
}

impl<'a> ReadScene<'a> {
    pub(crate) fn new(
        name: &str,
        data: &'a Data,
        (memory, checker): (&'a mut DeviceMemory, &'a mut Checker),
        cache: Cache,
        ours: Vec<(Contender, Reader)>,
        loops: Vec<ReadLoop>,
    ) -> Outcome<Self> {
        let goes = |way| loops.iter().any(|each| each.way() == way);
        // SAFETY: the data is ours, as long as it says, and no case that reads it so writes to it.
        let map = goes(ReadWay::Mapped)
            .then(|| unsafe { FileWindow::populate(&data.file, 0, data.len as usize) });
        let map = map.transpose().doing("map", &data.path)?;
        let direct = goes(ReadWay::Direct).then(|| direct::open(&data.path, false));
        let direct = direct
            .transpose()
            .doing("open past the page cache", &data.path)?;
        Ok(Self {
            name: name.to_owned(),
            data,
            direct,
            map,
            memory,
            checker,
            cache,
            ours,
            loops,
        })
    }

    /// Brings the bytes, by whomever.
    fn read(&mut self, who: usize, amount: u64) -> Outcome<()> {
        match who.checked_sub(self.ours.len()) {
            None => {
                let target = self.memory.target(0, amount as usize)?;
                self.ours[who].1.read_to(target)
            }
            Some(at) => {
                let each = &mut self.loops[at];
                let file = match each.way() {
                    ReadWay::Direct => self.direct.as_ref().unwrap_or(&self.data.file),
                    ReadWay::Cached | ReadWay::Mapped | ReadWay::CopyOnly => &self.data.file,
                };
                each.run((file, self.map.as_ref()), self.memory, amount)
                    .doing("read to the device", &self.data.path)
            }
        }
    }
}

impl Scene for ReadScene<'_> {
    fn contenders(&self) -> Vec<Contender> {
        let ours = self.ours.iter().map(|(contender, _)| contender.clone());
        let loops = self.loops.iter().map(ReadLoop::contender);
        ours.chain(loops).collect()
    }

    fn amounts(&self) -> Amounts {
        // Whole steps, so that direct loops end at a block. The first lap is long enough to say how long a lap takes.
        let most = self.data.len / STEP * STEP;
        Amounts {
            least: (most / 8).next_multiple_of(STEP).min(most),
            most,
            step: STEP,
        }
    }

    fn prepare(&mut self, _: usize, amount: u64, salt: u64) -> Outcome<()> {
        // Whatever the turn leaves out has the wrong bytes of this turn, and not the right ones of the last.
        let filled = self.memory.fill(salt as u8, amount as usize);
        filled.doing("fill the device's memory for", &self.data.path)?;
        if self.cache == Cache::Cold {
            ours::make_cold(&self.data.path, amount)?;
        }
        Ok(())
    }

    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
        self.read(who, amount)?;
        Ok(Moved::here(amount, 1))
    }

    fn check(&mut self, who: usize, amount: u64, _: u64) -> Outcome<()> {
        let brings = who
            .checked_sub(self.ours.len())
            .is_none_or(|at| self.loops[at].way() != ReadWay::CopyOnly);
        let (Some(seed), true) = (self.data.seed, brings) else {
            return Ok(());
        };
        let judge = |at: usize, bytes: &[u8]| {
            let wrong = pattern::first_difference(bytes, seed, at as u64);
            wrong.map(|byte| (at + byte) as u64)
        };
        let wrong = self.checker.look(self.memory, amount as usize, judge);
        match wrong.doing("compare the device's memory with", &self.data.path)? {
            None => Ok(()),
            Some(position) => Err(Trouble::Mismatch {
                case: self.name.clone(),
                contender: self.contenders()[who].name.clone(),
                position,
            }),
        }
    }

    /// Every byte of every turn has been compared.
    fn prove(&mut self, _: u64) -> Outcome<()> {
        Ok(())
    }
}
