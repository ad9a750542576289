//! One large read into memory that is allocated for it, as a program reads that keeps no buffers.

use kvik::HostBuffer;

use crate::contender::{Contender, Role};
use crate::data::{Data, STEP};
use crate::loops::FreshLoop;
use crate::memory::Pages;
use crate::ours::Ours;
use crate::race::{Amounts, Moved, Scene};
use crate::scenes::LEAST_TURN;
use crate::trouble::{Doing, Outcome, Trouble};

pub(crate) struct FreshScene<'a> {
    name: String,
    data: &'a Data,
    ours: Ours,
    loops: Vec<FreshLoop>,
    /// What the last turn read, so that giving the memory back is not part of the turn.
    kept: Kept,
}

enum Kept {
    Nothing,
    Bytes(HostBuffer),
    Pages(Pages, usize),
}

impl<'a> FreshScene<'a> {
    pub(crate) fn new(name: &str, data: &'a Data, ours: Ours, loops: Vec<FreshLoop>) -> Self {
        Self {
            name: name.to_owned(),
            data,
            ours,
            loops,
            kept: Kept::Nothing,
        }
    }
}

impl Scene for FreshScene<'_> {
    fn contenders(&self) -> Vec<Contender> {
        let loops = self.loops.iter();
        std::iter::once(Contender::ours())
            .chain(loops.map(|each| Contender::new(Role::Loop, each.name())))
            .collect()
    }

    fn amounts(&self) -> Amounts {
        Amounts {
            least: LEAST_TURN,
            most: self.data.len,
            step: STEP,
        }
    }

    fn prepare(&mut self, _: usize, _: u64, _: u64) -> Outcome<()> {
        self.kept = Kept::Nothing;
        Ok(())
    }

    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
        let len = amount as usize;
        self.kept = match who.checked_sub(1) {
            None => Kept::Bytes(self.ours.read_fresh(len)?),
            Some(at) => {
                let pages = self.loops[at].run(&self.data.file, len);
                Kept::Pages(pages.doing("read", &self.data.path)?, len)
            }
        };
        Ok(Moved::here(amount, 1))
    }

    /// New memory is zero, so nothing of an earlier turn can pass for what this one read.
    fn check(&mut self, who: usize, _: u64, _: u64) -> Outcome<()> {
        let difference = match &mut self.kept {
            Kept::Nothing => None,
            Kept::Bytes(bytes) => self.data.first_difference(bytes)?,
            Kept::Pages(pages, len) => self.data.first_difference(pages.view_mut(0, *len))?,
        };
        self.kept = Kept::Nothing;
        match difference {
            None => Ok(()),
            Some(position) => Err(Trouble::Mismatch {
                case: self.name.clone(),
                contender: self.contenders()[who].name.clone(),
                position,
            }),
        }
    }

    /// Every turn has been compared to its last byte.
    fn prove(&mut self, _: u64) -> Outcome<()> {
        Ok(())
    }
}
