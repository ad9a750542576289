//! Ours: all that the remote benchmarks ask of kvik.

use std::collections::VecDeque;

use kvik::{Addressing, Config, Keys, Pending, ReadPiece, RemoteHandle};

use crate::contender::{Contender, Role};
use crate::remote::door::{ACCESS_KEY, Door, REGION, SECRET_KEY};
use crate::remote::reader::Reader;
use crate::remote::site::Site;
use crate::trouble::{Outcome, Trouble};

/// Opens the object behind `door` with kvik's defaults: nothing is said but whom to trust and who asks.
pub(super) fn open(site: &Site, door: Door) -> Outcome<RemoteHandle> {
    // Not those of whoever runs it, among them a proxy.
    let options = RemoteHandle::builder().config(&Config::default());
    let options = match door {
        Door::Plain | Door::WebHdfs => options,
        Door::Tls => options.ca_bundle(&site.server().authority),
        Door::S3 => options
            .endpoint_url(&site.endpoint())
            .addressing(Addressing::Path)
            .region(REGION)
            .keys(Keys::new(ACCESS_KEY, SECRET_KEY)),
    };
    Ok(options.open(&site.url(door)?)?)
}

/// By which call the pieces are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// `read_at`, one after the other.
    OneByOne,
    /// `submit_read`, so many of them under way before the first is waited for.
    Submitted(usize),
    /// All of them in one call of `read_ranges`.
    InOneCall,
}

pub(super) struct Ours {
    handle: RemoteHandle,
    way: Way,
    role: Role,
    // Of reads that are not under way.
    buffers: Vec<Vec<u8>>,
}

impl Ours {
    /// The one that the case is about.
    pub(super) fn new(handle: RemoteHandle, way: Way) -> Self {
        Self {
            handle,
            way,
            role: Role::Ours,
            buffers: Vec::new(),
        }
    }

    /// Another way to ask kvik for the same, beside the one that the case is about.
    pub(super) fn beside(handle: RemoteHandle, way: Way) -> Self {
        Self {
            role: Role::Engine,
            ..Self::new(handle, way)
        }
    }

    fn submitted(&mut self, pieces: &mut [ReadTarget<'_>], most: usize) -> Outcome<()> {
        let mut under_way: VecDeque<(usize, Pending<Vec<u8>>)> = VecDeque::new();
        let count = pieces.len();
        for index in 0..count + most {
            if under_way.len() == most || index >= count {
                let Some((number, pending)) = under_way.pop_front() else {
                    break;
                };
                let (came, buffer) = pending.finish();
                let target = &mut *pieces[number].1;
                whole(came?, target.len())?;
                target.copy_from_slice(&buffer);
                self.buffers.push(buffer);
            }
            if let Some((offset, target)) = pieces.get(index) {
                let mut buffer = self.buffers.pop().unwrap_or_default();
                buffer.resize(target.len(), 0);
                under_way.push_back((index, self.handle.submit_read(buffer, *offset)));
            }
        }
        Ok(())
    }
}

/// Where a piece lies in the object, and where it is to go.
type ReadTarget<'t> = (u64, &'t mut [u8]);

impl Reader for Ours {
    fn contender(&self) -> Contender {
        let call = match self.way {
            Way::OneByOne => "read_at".to_owned(),
            Way::Submitted(most) => format!("submit_read, {most} under way"),
            Way::InOneCall => "read_ranges".to_owned(),
        };
        match self.role {
            Role::Ours => Contender::ours(),
            role => Contender::new(role, format!("kvik, {call}")),
        }
    }

    fn read(&mut self, target: &mut [u8], offsets: &[u64], size: usize) -> Outcome<()> {
        let pieces = offsets.iter().copied().zip(target.chunks_mut(size));
        match self.way {
            Way::OneByOne => {
                for (offset, piece) in pieces {
                    let len = piece.len();
                    whole(self.handle.read_at(piece, offset)?, len)?;
                }
                Ok(())
            }
            Way::Submitted(most) => self.submitted(&mut pieces.collect::<Vec<_>>(), most),
            Way::InOneCall => {
                let mut pieces: Vec<_> = pieces
                    .map(|(offset, piece)| ReadPiece::new(offset, piece))
                    .collect();
                let counts = self.handle.read_ranges(&mut pieces)?;
                let mut counts = counts.into_iter().zip(&pieces);
                counts.try_for_each(|(count, piece)| whole(count, piece.len()))
            }
        }
    }
}

fn whole(count: usize, len: usize) -> Outcome<()> {
    if count == len {
        Ok(())
    } else {
        Err(Trouble::Unfit(format!("kvik moved {count} of {len} bytes")))
    }
}
