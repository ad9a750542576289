//! One large read from the start of a file, out of the page cache or from the disk.

use crate::contender::{Contender, Role};
use crate::data::{Data, STEP};
use crate::loops::{ReadLoop, ReadTools};
use crate::ours::{self, Ours};
use crate::pattern;
use crate::race::{Amounts, Moved, Scene};
use crate::scenes::LEAST_TURN;
use crate::trouble::{Doing, Outcome, Trouble};

/// Whether the file is in the page cache when a turn begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    Hot,
    Cold,
}

/// Who reads a file with one call.
pub(crate) trait Reads {
    /// Fills `target` with the first bytes of the file.
    fn read_begin(&self, target: &mut [u8]) -> Outcome<()>;
}

impl Reads for Ours {
    fn read_begin(&self, target: &mut [u8]) -> Outcome<()> {
        self.read(target, 0)
    }
}

pub(crate) struct ReadScene<'a> {
    name: String,
    data: &'a Data,
    /// As long as the data.
    target: &'a mut [u8],
    cache: Cache,
    /// The first is the one that the case is about.
    ours: Vec<(Contender, Box<dyn Reads>)>,
    loops: Vec<(ReadLoop, ReadTools)>,
}

impl<'a> ReadScene<'a> {
    pub(crate) fn new(
        name: &str,
        data: &'a Data,
        target: &'a mut [u8],
        cache: Cache,
        ours: Vec<(Contender, Box<dyn Reads>)>,
        loops: Vec<ReadLoop>,
    ) -> Outcome<Self> {
        let loops = loops
            .into_iter()
            .map(|each| {
                let tools = each
                    .tools(&data.path)
                    .doing("prepare to read", &data.path)?;
                Ok((each, tools))
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
        match self.cache {
            Cache::Hot => Ok(()),
            Cache::Cold => ours::make_cold(&self.data.path, amount),
        }
    }

    fn mismatch(&self, who: usize, position: u64) -> Trouble {
        Trouble::Mismatch {
            case: self.name.clone(),
            contender: self.contenders()[who].name.clone(),
            position,
        }
    }
}

impl Scene for ReadScene<'_> {
    fn contenders(&self) -> Vec<Contender> {
        let ours = self.ours.iter().map(|(contender, _)| contender.clone());
        let loops = self.loops.iter();
        ours.chain(loops.map(|(each, _)| Contender::new(Role::Loop, each.name())))
            .collect()
    }

    fn amounts(&self) -> Amounts {
        Amounts {
            least: LEAST_TURN,
            most: self.data.len,
            step: STEP,
        }
    }

    fn prepare(&mut self, _: usize, amount: u64, salt: u64) -> Outcome<()> {
        if let Some(seed) = self.data.seed {
            pattern::spoil(&mut self.target[..amount as usize], seed, salt);
        }
        self.make_cold(amount)
    }

    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
        let target = &mut self.target[..amount as usize];
        match who.checked_sub(self.ours.len()) {
            None => self.ours[who].1.read_begin(target)?,
            Some(at) => {
                let (each, tools) = &mut self.loops[at];
                // SAFETY: `Mapped` and `Kept` are only listed for data of our own, which lies complete in a fresh folder that nobody
                // else knows of, and which nobody writes to after it was made.
                unsafe { each.run(&self.data.file, target, tools) }
                    .doing("read", &self.data.path)?;
            }
        }
        Ok(Moved::here(amount, 1))
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
        for who in 0..self.ours.len() {
            self.make_cold(amount)?;
            let target = &mut self.target[..amount as usize];
            target.fill(0);
            self.ours[who].1.read_begin(target)?;
            if let Some(at) = self.data.first_difference(target)? {
                return Err(self.mismatch(who, at));
            }
        }
        Ok(())
    }
}
