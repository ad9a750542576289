//! Which entries of a batch are moved together: those of one open file, direction and place of memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use kvik_stats::Direction;

use super::pending::PendingBatch;
use super::{Entries, progress::Progress};
use crate::device::Spot;
use crate::error::{Error, Op, Result};
use crate::file::FileHandle;
use crate::memory::Memory;
use crate::options::ReadOptions;
use crate::ranges::TASK_WEIGHT;

/// An entry as it was given.
pub(super) struct Given {
    pub(super) file: FileHandle,
    pub(super) direction: Direction,
    pub(super) offset: u64,
    pub(super) memory: Memory,
    pub(super) spot: Option<Spot>,
}

/// What entries must have in common. Those that wait for different streams are kept apart, so that no entry waits for a stream that
/// its own buffer does not name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    file: usize,
    direction: Direction,
    spot: Option<Spot>,
    by_cufile: bool,
}

struct Group {
    file: FileHandle,
    kind: Kind,
    members: Vec<Member>,
}

/// An entry, and where its bytes are in the file and in memory.
struct Member {
    entry: usize,
    range: Range<u64>,
    memory: Memory,
}

/// Starts what was given, group by group; what is refused ends at once.
pub(super) fn start<B: Send + 'static>(
    given: impl Iterator<Item = Given>,
    options: &ReadOptions,
    pending: &mut PendingBatch<B>,
) {
    let mut groups: Vec<Group> = Vec::new();
    let (mut known, mut last): (_, Option<usize>) = (HashMap::new(), None);
    let mut ended = Vec::new();
    for (entry, given) in given.enumerate() {
        let (kind, member) = match sorted(entry, &given) {
            Ok((_, member)) if member.memory.len() == 0 => {
                ended.push((entry, Ok(0)));
                continue;
            }
            Ok(sorted) => sorted,
            Err(error) => {
                ended.push((entry, Err(explained(error, &given))));
                continue;
            }
        };
        // As a rule an entry is like the one before.
        let number = match last {
            Some(last) if groups[last].kind == kind => last,
            _ => *known.entry(kind).or_insert_with(|| {
                groups.push(Group {
                    file: given.file,
                    kind,
                    members: Vec::new(),
                });
                groups.len() - 1
            }),
        };
        groups[number].members.push(member);
        last = Some(number);
    }
    pending.progress().tell(ended.into_iter());
    for group in groups {
        group.start(options, pending);
    }
}

/// What an entry has in common with others, and what is its own.
fn sorted(entry: usize, given: &Given) -> Result<(Kind, Member)> {
    let Given { file, spot, .. } = given;
    let (range, memory) = file.entry(given.direction, given.offset, given.memory)?;
    let kind = Kind {
        file: file.identity(),
        direction: given.direction,
        spot: *spot,
        by_cufile: spot.is_some() && file.entry_is_for_cufile(memory.len(), *spot)?,
    };
    let member = Member {
        entry,
        range,
        memory,
    };
    Ok((kind, member))
}

fn explained(error: Error, given: &Given) -> Error {
    let end = given.offset.saturating_add(given.memory.len() as u64);
    let error = error
        .during(Op::from(given.direction))
        .at(given.file.place());
    error.within(given.offset..end, 0)
}

impl Group {
    fn start<B: Send + 'static>(self, options: &ReadOptions, pending: &mut PendingBatch<B>) {
        let Kind {
            direction, spot, ..
        } = self.kind;
        let pieces = self.members.iter();
        let pieces = pieces.map(|member| (member.range.start, member.memory));
        let weight = self.members.iter().map(Member::weight).sum();
        let progress = pending.progress();
        let call = self.file.entries_call(weight, options);
        let started = call.and_then(|(call, gap)| {
            let layout = |ranges| {
                let named = self.members.iter();
                let named = named.map(|member| (member.entry, member.range.clone()));
                let place = self.file.place().clone();
                Entries::new(ranges, named, direction, place, Arc::clone(progress))
            };
            let (transfer, threads) = call.entries(direction, pieces, spot, gap, layout)?;
            Ok((transfer, call.pool, threads))
        });
        match started {
            Ok((transfer, pool, threads)) => pending.start(transfer, &pool, threads),
            Err(error) => self.refuse(&error, progress),
        }
    }

    /// All of them end so.
    fn refuse(&self, error: &Error, progress: &Progress) {
        let error = error.clone().during(Op::from(self.kind.direction));
        let error = error.at(self.file.place());
        let refused = self.members.iter().map(|member| {
            let error = error.clone().within(member.range.clone(), 0);
            (member.entry, Err(error))
        });
        progress.tell(refused);
    }
}

impl Member {
    fn weight(&self) -> u64 {
        self.memory.len() as u64 + TASK_WEIGHT
    }
}
