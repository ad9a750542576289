//! One large read from the start of a file, out of the page cache or from the disk.

use crate::data::{Data, STEP};
use crate::loops::ReadLoop;
use crate::memory::Pages;
use crate::ours::{self, Ours};
use crate::pattern;
use crate::race::{Amounts, Moved, Scene};
use crate::scenes::OURS;
use crate::trouble::{Doing, Outcome, Trouble};

/// Whether the file is in the page cache when a turn begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    Hot,
    Cold,
}

pub(crate) struct ReadScene<'a> {
    name: String,
    data: &'a Data,
    /// As long as the data.
    target: &'a mut [u8],
    cache: Cache,
    ours: Ours,
    loops: Vec<(ReadLoop, Vec<Pages>)>,
}

impl<'a> ReadScene<'a> {
    pub(crate) fn new(
        name: &str,
        data: &'a Data,
        target: &'a mut [u8],
        cache: Cache,
        ours: Ours,
        loops: Vec<ReadLoop>,
    ) -> Outcome<Self> {
        let loops = loops
            .into_iter()
            .map(|each| {
                let scratches = each.scratches().doing("get memory to read", &data.path)?;
                Ok((each, scratches))
            })
            .collect::<Outcome<_>>()?;
        Ok(Self {
            name: name.to_owned(),
            data,
            target,
            cache,
            ours,
            loops,
        })
    }

    fn make_cold(&self, amount: u64) -> Outcome<()> {
        if self.cache == Cache::Cold
            && ours::drop_from_cache(&self.data.path, amount)? > STILL_CACHED
        {
            return Err(Trouble::Unfit(
                "the file stays in the page cache, so that nothing comes from a disk".into(),
            ));
        }
        Ok(())
    }

    fn mismatch(&self, who: usize, position: u64) -> Trouble {
        Trouble::Mismatch {
            case: self.name.clone(),
            contender: self.contenders()[who].clone(),
            position,
        }
    }
}

impl Scene for ReadScene<'_> {
    fn contenders(&self) -> Vec<String> {
        let loops = self.loops.iter().map(|(each, _)| each.name());
        std::iter::once(OURS.to_owned()).chain(loops).collect()
    }

    fn amounts(&self) -> Amounts {
        Amounts {
            least: LEAST_TURN,
            most: self.data.len,
            step: STEP,
        }
    }

    fn prepare(&mut self, amount: u64, salt: u64) -> Outcome<()> {
        if let Some(seed) = self.data.seed {
            pattern::spoil(&mut self.target[..amount as usize], seed, salt);
        }
        self.make_cold(amount)
    }

    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
        let target = &mut self.target[..amount as usize];
        match who.checked_sub(1).and_then(|at| self.loops.get_mut(at)) {
            None => self.ours.read(target, 0)?,
            Some((each, scratches)) => {
                // SAFETY: `Mapped` is only listed for data of our own, which lies complete in a fresh folder that nobody
                // else knows of, and which nobody writes to after it was made.
                unsafe { each.run(&self.data.file, target, scratches) }
                    .doing("read", &self.data.path)?;
            }
        }
        Ok(Moved {
            bytes: amount,
            operations: 1,
        })
    }

    fn check(&mut self, who: usize, amount: u64, salt: u64) -> Outcome<()> {
        let Some(seed) = self.data.seed else {
            return Ok(());
        };
        match pattern::still_spoiled(&self.target[..amount as usize], seed, salt) {
            None => Ok(()),
            Some(at) => Err(self.mismatch(who, at as u64)),
        }
    }

    fn prove(&mut self, amount: u64) -> Outcome<()> {
        self.make_cold(amount)?;
        let target = &mut self.target[..amount as usize];
        target.fill(0);
        self.ours.read(target, 0)?;
        match self.data.first_difference(target)? {
            None => Ok(()),
            Some(at) => Err(self.mismatch(0, at)),
        }
    }
}

const LEAST_TURN: u64 = 32 << 20;
// A page or two that somebody holds on to do not make a file hot.
const STILL_CACHED: f64 = 0.02;
