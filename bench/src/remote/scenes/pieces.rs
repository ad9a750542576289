//! Small ranges at random places of the object, some of them under way at a time.

use crate::contender::Contender;
use crate::data::Data;
use crate::memory::Pages;
use crate::race::{Amounts, Moved, Scene};
use crate::remote::reader::Reader;
use crate::scenes::place;
use crate::trouble::{Doing, Outcome, Trouble};

pub(crate) struct PiecesScene<'a> {
    name: String,
    data: &'a Data,
    size: usize,
    /// Pieces between two looks at the clock of the run.
    list: usize,
    target: Pages,
    /// The first is the one that the case is about.
    readers: Vec<Box<dyn Reader + 'a>>,
    offsets: Vec<u64>,
}

impl<'a> PiecesScene<'a> {
    pub(crate) fn new(
        name: &str,
        data: &'a Data,
        (size, list): (usize, usize),
        readers: Vec<Box<dyn Reader + 'a>>,
    ) -> Outcome<Self> {
        let target = Pages::new(list * size).doing("get memory to read", &data.path)?;
        Ok(Self {
            name: name.to_owned(),
            data,
            size,
            list,
            target,
            readers,
            offsets: Vec::new(),
        })
    }
}

impl Scene for PiecesScene<'_> {
    fn contenders(&self) -> Vec<Contender> {
        self.readers
            .iter()
            .map(|reader| reader.contender())
            .collect()
    }

    fn amounts(&self) -> Amounts {
        Amounts {
            least: self.list as u64,
            most: MOST_LISTS * self.list as u64,
            step: self.list as u64,
        }
    }

    fn prepare(&mut self, _: usize, amount: u64, salt: u64) -> Outcome<()> {
        let (len, size) = (self.data.len, self.size);
        let places = (0..amount).map(|index| place(len, size, salt, index));
        self.offsets.clear();
        self.offsets.extend(places);
        self.target.view_mut(0, self.list * size).fill(0);
        Ok(())
    }

    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
        for offsets in self.offsets.chunks(self.list) {
            let target = self.target.view_mut(0, offsets.len() * self.size);
            self.readers[who].read(target, offsets, self.size)?;
        }
        Ok(Moved::here(amount * self.size as u64, amount))
    }

    /// All bytes of the last list.
    fn check(&mut self, who: usize, _: u64, _: u64) -> Outcome<()> {
        let list = self.offsets.len().saturating_sub(self.list)..;
        let offsets = &self.offsets[list];
        let target = self.target.view_mut(0, offsets.len() * self.size);
        for (&offset, piece) in offsets.iter().zip(target.chunks(self.size)) {
            if let Some(position) = self.data.difference_at(piece, offset)? {
                return Err(Trouble::Mismatch {
                    case: self.name.clone(),
                    contender: self.readers[who].contender().name,
                    position,
                });
            }
        }
        Ok(())
    }

    /// The last list of every turn has been compared to its last byte.
    fn prove(&mut self, _: u64) -> Outcome<()> {
        Ok(())
    }
}

// Some seconds at the rates seen.
const MOST_LISTS: u64 = 32;
