//! Many small pieces of a cached file at random places, to places of their own in memory of the device.

use kvik::ReadPiece;

use crate::contender::Contender;
use crate::data::Data;
use crate::gpu::loops::ListLoop;
use crate::gpu::{Checker, DeviceMemory};
use crate::ours::Ours;
use crate::pattern;
use crate::race::{Amounts, Moved, Scene};
use crate::scenes::place;
use crate::trouble::{Doing, Outcome, Trouble};

/// How a list comes to the device, and where its pieces go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The list in one call; places of neighbours in the list lie apart.
    Scattered,
    /// The list in one call; each piece goes behind the one before.
    Joined,
    /// One call for each piece, which is there before the next call.
    OneByOne,
}

pub(crate) struct ListScene<'a> {
    name: String,
    data: &'a Data,
    size: usize,
    order: Order,
    memory: &'a DeviceMemory,
    checker: &'a mut Checker,
    /// The place of each piece of the list, as kvik takes it, and as a distance from the begin of the memory.
    parts: Vec<ReadPiece<'a>>,
    places: Vec<usize>,
    ours: Ours,
    loops: Vec<ListLoop>,
    offsets: Vec<u64>,
}

impl<'a> ListScene<'a> {
    pub(crate) fn new(
        name: &str,
        data: &'a Data,
        (size, order): (usize, Order),
        (memory, checker): (&'a DeviceMemory, &'a mut Checker),
        ours: Ours,
        loops: Vec<ListLoop>,
    ) -> Outcome<Self> {
        let places = places(data.len, size, order);
        let parts = places.iter().map(|&at| {
            // SAFETY: the parts do not overlap. One contender runs at a time, and only kvik goes through them.
            let part = unsafe { memory.shared_target(at, size) }?;
            Ok(ReadPiece::new(0, part))
        });
        Ok(Self {
            name: name.to_owned(),
            data,
            size,
            order,
            memory,
            parts: parts.collect::<Outcome<_>>()?,
            checker,
            places,
            ours,
            loops,
            offsets: Vec::new(),
        })
    }

    /// One list, by whomever.
    fn read(&mut self, who: usize, list: std::ops::Range<usize>) -> Outcome<()> {
        let offsets = &self.offsets[list];
        match who.checked_sub(1) {
            None => {
                let parts = self.parts.iter_mut().zip(offsets);
                if self.order == Order::OneByOne {
                    for (part, &at) in parts {
                        self.ours.read_to(part.target(), at)?;
                    }
                    return Ok(());
                }
                let pieces = parts.map(|(part, &at)| ReadPiece::new(at, part.target()));
                self.ours.read_pieces(&mut pieces.collect::<Vec<_>>())
            }
            Some(at) => self.loops[at]
                .run(&self.data.file, offsets, &self.places, self.memory)
                .doing("read to the device", &self.data.path),
        }
    }
}

impl Scene for ListScene<'_> {
    fn contenders(&self) -> Vec<Contender> {
        let loops = self.loops.iter().map(ListLoop::contender);
        std::iter::once(Contender::ours()).chain(loops).collect()
    }

    fn amounts(&self) -> Amounts {
        let list = self.places.len() as u64;
        Amounts {
            least: list,
            most: MOST_LISTS * list,
            step: list,
        }
    }

    fn prepare(&mut self, _: usize, amount: u64, salt: u64) -> Outcome<()> {
        let (len, size) = (self.data.len, self.size);
        self.offsets.clear();
        let offsets = (0..amount).map(|index| place(len, size, salt, index));
        self.offsets.extend(offsets);
        let filled = self.memory.fill(salt as u8, self.places.len() * size);
        filled.doing("fill the device's memory for", &self.data.path)
    }

    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
        let list = self.places.len();
        for first in (0..amount as usize).step_by(list) {
            self.read(who, first..first + list)?;
        }
        Ok(Moved::here(amount * self.size as u64, amount))
    }

    /// The last list of the turn, every byte of it.
    fn check(&mut self, who: usize, amount: u64, _: u64) -> Outcome<()> {
        let Some(seed) = self.data.seed else {
            return Ok(());
        };
        let (list, size) = (self.places.len(), self.size);
        let last = &self.offsets[amount as usize - list..];
        // What stands at each place, in their order.
        let mut wanted = vec![0; list];
        for (&at, &offset) in self.places.iter().zip(last) {
            wanted[at / size] = offset;
        }
        let judge = |at: usize, bytes: &[u8]| {
            let pieces = bytes.chunks(size).zip(&wanted[at / size..]);
            pieces.into_iter().find_map(|(piece, &offset)| {
                let wrong = pattern::first_difference(piece, seed, offset);
                wrong.map(|byte| offset + byte as u64)
            })
        };
        let wrong = self.checker.look(self.memory, list * size, judge);
        match wrong.doing("compare the device's memory with", &self.data.path)? {
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

/// How many pieces a list has, of a file of `len` bytes: a power of two, so that an odd step visits all places.
pub(crate) fn list_len(len: u64, size: usize, order: Order) -> usize {
    let room = len.min(MOST_BYTES) as usize / size;
    let most = match order {
        Order::Scattered | Order::Joined => MOST_PIECES,
        Order::OneByOne => MOST_ONE_BY_ONE,
    };
    1 << room.clamp(1, most).ilog2()
}

/// Where in the memory each piece of a list goes.
fn places(len: u64, size: usize, order: Order) -> Vec<usize> {
    let count = list_len(len, size, order);
    let step = match order {
        Order::Scattered => (STEP % count) | 1,
        Order::Joined | Order::OneByOne => 1,
    };
    (0..count)
        .map(|index| index * step % count * size)
        .collect()
}

const MOST_BYTES: u64 = 512 << 20;
const MOST_PIECES: usize = 32 << 10;
// A tenth of a second at the rates seen.
const MOST_ONE_BY_ONE: usize = 8 << 10;
const MOST_LISTS: u64 = 64;
// Odd, and far from any simple part of a power of two.
const STEP: usize = 40_503;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_used_once_and_scattered_neighbours_lie_apart() {
        for (len, size) in [(8 << 20, 4096), (4 << 30, 4096), (4 << 30, 65_536)] {
            let scattered = places(len, size, Order::Scattered);
            let apart = |pair: &[usize]| pair[0].abs_diff(pair[1]) > size;
            assert!(scattered.windows(2).all(apart), "{len} {size}");
            let mut sorted = scattered.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, places(len, size, Order::Joined));
            assert!(sorted.len() as u64 * size as u64 <= len);
        }
        assert_eq!(list_len(4 << 30, 4096, Order::Joined), 32 << 10);
        assert_eq!(list_len(4 << 30, 65_536, Order::Joined), 8 << 10);
        assert_eq!(list_len(8 << 20, 4096, Order::OneByOne), 2 << 10);
    }
}
