//! Many small pieces at random places that are known beforehand, a list of them in one call.

use std::fs::File;

use crate::contender::{Contender, Role};
use crate::data::Data;
use crate::loops::{ListLoop, direct};
use crate::memory::Pages;
use crate::ours::{self, Ours};
use crate::race::{Amounts, Moved, Scene};
use crate::scenes::small::place;
use crate::trouble::{Doing, Outcome, Trouble};

pub(crate) struct ListScene<'a> {
    name: String,
    data: &'a Data,
    /// The data past the page cache, where the case goes there.
    direct: Option<File>,
    size: usize,
    target: Pages,
    /// The first is the one that the case is about.
    ours: Vec<(Contender, Ours)>,
    loops: Vec<ListLoop>,
    offsets: Vec<u64>,
}

impl<'a> ListScene<'a> {
    /// `past_the_cache`: the pieces come from the disk, whether by `ours` or by the loops.
    pub(crate) fn new(
        name: &str,
        data: &'a Data,
        size: usize,
        past_the_cache: bool,
        ours: Vec<(Contender, Ours)>,
        threads: &[usize],
    ) -> Outcome<Self> {
        let open = past_the_cache.then(|| direct::open(&data.path, false));
        let direct = open
            .transpose()
            .doing("open past the page cache", &data.path)?;
        let target = Pages::new(LIST as usize * size).doing("get memory to read", &data.path)?;
        let each = |&threads: &usize| ListLoop {
            threads,
            direct: past_the_cache,
        };
        Ok(Self {
            name: name.to_owned(),
            data,
            direct,
            size,
            target,
            ours,
            loops: threads.iter().map(each).collect(),
            offsets: Vec::new(),
        })
    }

    fn read(&mut self, who: usize, offsets: std::ops::Range<usize>) -> Outcome<()> {
        let offsets = &self.offsets[offsets];
        let target = self.target.view_mut(0, offsets.len() * self.size);
        match self.ours.get(who) {
            Some((_, ours)) => ours.read_list(target, offsets, self.size),
            None => {
                let file = self.direct.as_ref().unwrap_or(&self.data.file);
                self.loops[who - self.ours.len()]
                    .run(file, offsets, self.size, target)
                    .doing("read", &self.data.path)
            }
        }
    }

    /// The position in the file of the first byte of the last list that is wrong.
    fn first_difference(&mut self) -> Outcome<Option<u64>> {
        let list = self.offsets.len().saturating_sub(LIST as usize)..;
        let offsets = &self.offsets[list];
        let target = self.target.view_mut(0, offsets.len() * self.size);
        for (&offset, piece) in offsets.iter().zip(target.chunks(self.size)) {
            if let Some(at) = self.data.difference_at(piece, offset)? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }
}

impl Scene for ListScene<'_> {
    fn contenders(&self) -> Vec<Contender> {
        let ours = self.ours.iter().map(|(contender, _)| contender.clone());
        let loops = self.loops.iter().map(|each| each.name(self.size));
        ours.chain(loops.map(|name| Contender::new(Role::Loop, name)))
            .collect()
    }

    fn amounts(&self) -> Amounts {
        Amounts {
            least: LIST,
            most: MOST_LISTS * LIST,
            step: LIST,
        }
    }

    fn prepare(&mut self, _: usize, amount: u64, salt: u64) -> Outcome<()> {
        let (len, size) = (self.data.len, self.size);
        let places = (0..amount).map(|index| place(len, size, salt, index));
        self.offsets.clear();
        self.offsets.extend(places);
        self.target.view_mut(0, LIST as usize * size).fill(0);
        if self.direct.is_some() {
            ours::drop_from_cache(&self.data.path, len)?;
        }
        Ok(())
    }

    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
        for list in (0..amount as usize).step_by(LIST as usize) {
            self.read(who, list..list + LIST as usize)?;
        }
        Ok(Moved::here(amount * self.size as u64, amount))
    }

    fn check(&mut self, who: usize, _: u64, _: u64) -> Outcome<()> {
        match self.first_difference()? {
            None => Ok(()),
            Some(position) => Err(Trouble::Mismatch {
                case: self.name.clone(),
                contender: self.contenders()[who].name.clone(),
                position,
            }),
        }
    }

    /// The last list of every turn has been compared to its last byte.
    fn prove(&mut self, _: u64) -> Outcome<()> {
        Ok(())
    }
}

/// Pieces in one call.
pub(crate) const LIST: u64 = 10_000;
// A second and a half at the rates seen from the page cache.
const MOST_LISTS: u64 = 64;
