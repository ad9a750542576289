//! What is read to a device, and written from one, by whatever door: at places that no alignment suits, looked at with the
//! driver's own calls.

use std::ops::Range;
use std::sync::Arc;

use kvik::{
    DeviceBuffer, FileHandle, MmapHandle, Pending, ReadAt, ReadPiece, RemoteHandle, Target,
};

use super::InFlight;
use crate::gpu::{Gpu, Kind, Memory};
use crate::pattern::{UNTOUCHED, assert_all};

/// A handle that reads to devices.
pub(super) trait Handle: ReadAt {
    /// Starts a read.
    fn submit_read(&self, buffer: DeviceBuffer, offset: u64) -> Pending<DeviceBuffer>;
}

impl Handle for FileHandle {
    fn submit_read(&self, buffer: DeviceBuffer, offset: u64) -> Pending<DeviceBuffer> {
        FileHandle::submit_read(self, buffer, offset)
    }
}

impl Handle for MmapHandle {
    fn submit_read(&self, buffer: DeviceBuffer, offset: u64) -> Pending<DeviceBuffer> {
        MmapHandle::submit_read(self, buffer, offset)
    }
}

impl Handle for RemoteHandle {
    fn submit_read(&self, buffer: DeviceBuffer, offset: u64) -> Pending<DeviceBuffer> {
        RemoteHandle::submit_read(self, buffer, offset)
    }
}

/// A handle whose bytes go by way of a device.
pub(super) struct OnDevice<H> {
    pub(super) gpu: Arc<Gpu>,
    pub(super) kind: Kind,
    pub(super) handle: H,
}

impl<H> OnDevice<H> {
    /// Memory for pieces of these lengths, and where they lie in it: each a few bytes behind the one before.
    pub(super) fn room(&self, lengths: impl Iterator<Item = usize>) -> (Memory, Vec<Range<usize>>) {
        let mut end = 0;
        let place = |len: usize| {
            let start = end + GAP;
            end = start + len;
            start..end
        };
        let places: Vec<_> = lengths.map(place).collect();
        let mut memory = Memory::new(&self.gpu, 0, self.kind, end + GAP);
        memory.set(UNTOUCHED);
        (memory, places)
    }

    /// A buffer on the device that holds these bytes.
    pub(super) fn holding(&self, bytes: &[u8]) -> DeviceBuffer {
        let mut buffer = DeviceBuffer::new(0, bytes.len()).unwrap();
        buffer.copy_from_host(bytes).unwrap();
        buffer
    }

    /// Has `read` fill places on the device, looks that nothing else was touched there, and hands on what came.
    fn fill(
        &self,
        pieces: &mut [ReadPiece<'_>],
        read: impl FnOnce(&mut Memory, &[Range<usize>]) -> kvik::Result<Vec<usize>>,
    ) -> kvik::Result<Vec<usize>> {
        let (mut memory, places) = self.room(pieces.iter().map(ReadPiece::len));
        let counts = read(&mut memory, &places)?;
        let bytes = memory.bytes();
        let mut end = 0;
        for ((piece, place), count) in pieces.iter_mut().zip(&places).zip(&counts) {
            assert_all(&bytes[end..place.start], UNTOUCHED);
            end = place.start + count;
            let mut target = piece.target();
            let mut window = target.window().expect("the exam reads into its own memory");
            window.put(&bytes[place.start..end]);
        }
        assert_all(&bytes[end..], UNTOUCHED);
        Ok(counts)
    }
}

impl<H: Handle> OnDevice<H> {
    pub(super) fn submit(&self, buffer: &[u8], offset: u64) -> Box<dyn InFlight> {
        Box::new(Flying(
            self.handle.submit_read(self.holding(buffer), offset),
        ))
    }
}

impl<H: Handle> ReadAt for OnDevice<H> {
    fn read_at(&self, target: Target<'_>, offset: u64) -> kvik::Result<usize> {
        let counts = self.fill(&mut [ReadPiece::new(offset, target)], |memory, places| {
            let [place] = places else { panic!("one piece") };
            let target = memory.target(place.clone());
            Ok(vec![self.handle.read_at(target, offset)?])
        })?;
        Ok(counts[0])
    }

    fn len(&self) -> kvik::Result<u64> {
        self.handle.len()
    }

    fn read_ranges(&self, pieces: &mut [ReadPiece<'_>]) -> kvik::Result<Vec<usize>> {
        let offsets: Vec<_> = pieces.iter().map(ReadPiece::offset).collect();
        self.fill(pieces, |memory, places| {
            let targets = memory.targets(places);
            let mut pieces: Vec<_> = offsets
                .iter()
                .zip(targets)
                .map(|(offset, target)| ReadPiece::new(*offset, target))
                .collect();
            self.handle.read_ranges(&mut pieces)
        })
    }
}

/// A transfer of a device's memory.
pub(super) struct Flying(pub(super) Pending<DeviceBuffer>);

impl InFlight for Flying {
    fn cancel(&self) {
        self.0.cancel();
    }

    fn finish(self: Box<Self>) -> (kvik::Result<usize>, Vec<u8>) {
        let (outcome, buffer) = self.0.finish();
        let mut bytes = vec![0; buffer.len()];
        buffer.copy_to_host(&mut bytes).unwrap();
        (outcome, bytes)
    }
}

// Odd, so that each place has another alignment than the one before.
const GAP: usize = 33;
