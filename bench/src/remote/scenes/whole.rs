//! All of the object, in one call.

use crate::contender::Contender;
use crate::data::Data;
use crate::pattern;
use crate::race::{Amounts, Moved, Scene};
use crate::remote::reader::Reader;
use crate::scenes::LEAST_TURN;
use crate::trouble::{Outcome, Trouble};

pub(crate) struct WholeScene<'a> {
    name: String,
    data: &'a Data,
    /// What the data holds.
    seed: u64,
    /// As long as the data.
    target: &'a mut [u8],
    /// The first is the one that the case is about.
    readers: Vec<Box<dyn Reader + 'a>>,
}

impl<'a> WholeScene<'a> {
    pub(crate) fn new(
        name: &str,
        (data, seed): (&'a Data, u64),
        target: &'a mut [u8],
        readers: Vec<Box<dyn Reader + 'a>>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            data,
            seed,
            target,
            readers,
        }
    }

    fn mismatch(&self, who: usize, position: u64) -> Trouble {
        Trouble::Mismatch {
            case: self.name.clone(),
            contender: self.readers[who].contender().name,
            position,
        }
    }
}

impl Scene for WholeScene<'_> {
    fn contenders(&self) -> Vec<Contender> {
        self.readers
            .iter()
            .map(|reader| reader.contender())
            .collect()
    }

    fn amounts(&self) -> Amounts {
        Amounts {
            least: self.data.len.min(LEAST_TURN),
            most: self.data.len,
            step: crate::data::STEP,
        }
    }

    fn prepare(&mut self, _: usize, amount: u64, salt: u64) -> Outcome<()> {
        pattern::spoil(&mut self.target[..amount as usize], self.seed, salt);
        Ok(())
    }

    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
        let target = &mut self.target[..amount as usize];
        self.readers[who].read(target, &[0], amount as usize)?;
        Ok(Moved::here(amount, 1))
    }

    fn check(&mut self, who: usize, amount: u64, salt: u64) -> Outcome<()> {
        match pattern::still_spoiled(&self.target[..amount as usize], self.seed, salt) {
            None => Ok(()),
            Some(at) => Err(self.mismatch(who, at as u64)),
        }
    }

    fn prove(&mut self, amount: u64) -> Outcome<()> {
        let target = &mut self.target[..amount as usize];
        target.fill(0);
        self.readers[0].read(target, &[0], amount as usize)?;
        match self.data.first_difference(target)? {
            None => Ok(()),
            Some(at) => Err(self.mismatch(0, at)),
        }
    }
}
