//! Small reads at random places of a cached file, one after the other on one thread.

use crate::contender::{Contender, OURS, Role};
use crate::data::Data;
use crate::loops::SmallRead;
use crate::memory::Pages;
use crate::ours::Ours;
use crate::pattern;
use crate::race::{Amounts, Moved, Scene};
use crate::trouble::{Doing, Outcome, Trouble};

pub(crate) struct SmallScene<'a> {
    name: String,
    data: &'a Data,
    size: usize,
    target: Pages,
    ours: Ours,
    salt: u64,
    /// The first read of the turn that did not bring the first bytes of its place.
    wrong: Option<u64>,
}

impl<'a> SmallScene<'a> {
    pub(crate) fn new(name: &str, data: &'a Data, size: usize, ours: Ours) -> Outcome<Self> {
        let target = Pages::new(size).doing("get memory to read", &data.path)?;
        Ok(Self {
            name: name.to_owned(),
            data,
            size,
            target,
            ours,
            salt: 0,
            wrong: None,
        })
    }

    /// Where read number `index` begins: a multiple of its size, so that the same pages are touched by reads of any size.
    fn offset(&self, index: u64) -> u64 {
        place(self.data.len, self.size, self.salt, index)
    }

    fn mismatch(&self, contender: &str, position: u64) -> Trouble {
        Trouble::Mismatch {
            case: self.name.clone(),
            contender: contender.to_owned(),
            position,
        }
    }
}

impl Scene for SmallScene<'_> {
    fn contenders(&self) -> Vec<Contender> {
        let pread = Contender::new(Role::Loop, SmallRead::name(self.size));
        vec![Contender::ours(), pread]
    }

    fn amounts(&self) -> Amounts {
        Amounts {
            least: 2000,
            most: 2_000_000,
            step: 1000,
        }
    }

    fn prepare(&mut self, _: usize, _: u64, salt: u64) -> Outcome<()> {
        // One salt for the turns of a round would be fairer still, and would let the second contender find its lines warm.
        self.salt = salt;
        self.wrong = None;
        Ok(())
    }

    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
        for index in 0..amount {
            let offset = self.offset(index);
            let target = self.target.view_mut(0, self.size);
            if who == 0 {
                self.ours.read(target, offset)?;
            } else {
                SmallRead::run(&self.data.file, target, offset).doing("read", &self.data.path)?;
            }
            // Looking at the first word costs everybody the same few nanoseconds.
            if let Some(seed) = self.data.seed
                && target.first_chunk() != Some(&pattern::word(seed, offset / 8).to_le_bytes())
            {
                self.wrong.get_or_insert(offset);
            }
        }
        Ok(Moved::here(amount * self.size as u64, amount))
    }

    fn check(&mut self, who: usize, _: u64, _: u64) -> Outcome<()> {
        match self.wrong {
            None => Ok(()),
            Some(offset) => Err(self.mismatch(&self.contenders()[who].name, offset)),
        }
    }

    fn prove(&mut self, amount: u64) -> Outcome<()> {
        let Some(seed) = self.data.seed else {
            return Ok(());
        };
        for index in 0..amount.min(PROVEN) {
            let offset = self.offset(index);
            let target = self.target.view_mut(0, self.size);
            target.fill(0);
            self.ours.read(target, offset)?;
            if let Some(at) = pattern::first_difference(target, seed, offset) {
                return Err(self.mismatch(OURS, offset + at as u64));
            }
        }
        Ok(())
    }
}

/// Where read number `index` of a turn begins, in a file of `len` bytes.
pub(crate) fn place(len: u64, size: usize, salt: u64, index: u64) -> u64 {
    let size = size as u64;
    pattern::word(salt, index) % (len / size).max(1) * size
}

// As many reads again as one turn, within a second.
const PROVEN: u64 = 50_000;
