//! The door of local files whose bytes go to a device and come from one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kvik::{
    DeviceBuffer, EnginePreference, FileHandle, Layer, Pending, ReadAt, ReadPiece, Target,
    WritePiece,
};

use super::files::file;
use super::{Door, InFlight, Opened, Setting, Writer};
use crate::gpu::{Gpu, Kind, Memory};
use crate::pattern::{UNTOUCHED, assert_all};

/// Files in a folder. What is read lands on a device, at places that no alignment suits, and is fetched from there with the
/// driver's own calls; what is written lies there.
#[derive(Clone, Debug)]
pub struct DeviceFiles {
    gpu: Arc<Gpu>,
    kind: Kind,
    folder: PathBuf,
    engine: EnginePreference,
    settings: Layer,
}

impl DeviceFiles {
    /// Files in `folder`, which decides the file system.
    #[must_use]
    pub fn in_folder(gpu: Gpu, folder: &Path) -> DeviceFiles {
        DeviceFiles {
            gpu: Arc::new(gpu),
            kind: Kind::Plain,
            folder: folder.to_owned(),
            engine: EnginePreference::Auto,
            settings: Layer::new(),
        }
    }

    /// The same with memory of this kind.
    #[must_use]
    pub fn with_memory(self, kind: Kind) -> DeviceFiles {
        DeviceFiles { kind, ..self }
    }

    /// The same, with the file read and written by this engine.
    #[must_use]
    pub fn with_engine(self, engine: EnginePreference) -> DeviceFiles {
        DeviceFiles { engine, ..self }
    }

    /// The same with more settings than the exam's.
    #[must_use]
    pub fn with_settings(self, settings: Layer) -> DeviceFiles {
        DeviceFiles { settings, ..self }
    }
}

impl Door for DeviceFiles {
    fn open(&self, bytes: &[u8], setting: &Setting) -> Box<dyn Opened> {
        let path = file(&self.folder, bytes);
        let config = setting.config().with(self.settings.clone()).unwrap();
        let handle = FileHandle::options()
            .read(true)
            .write(true)
            .engine(self.engine)
            .open_with(&path, &config)
            .unwrap();
        Box::new(OpenFile {
            gpu: Arc::clone(&self.gpu),
            kind: self.kind,
            handle,
            path,
        })
    }

    fn writes(&self) -> bool {
        true
    }
}

struct OpenFile {
    gpu: Arc<Gpu>,
    kind: Kind,
    handle: FileHandle,
    path: tempfile::TempPath,
}

impl OpenFile {
    /// Memory for pieces of these lengths, and where they lie in it: each a few bytes behind the one before.
    fn room(&self, lengths: impl Iterator<Item = usize>) -> (Memory, Vec<std::ops::Range<usize>>) {
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

    fn holding(&self, bytes: &[u8]) -> DeviceBuffer {
        let mut buffer = DeviceBuffer::new(0, bytes.len()).unwrap();
        buffer.copy_from_host(bytes).unwrap();
        buffer
    }
}

impl ReadAt for OpenFile {
    fn read_at(&self, target: Target<'_>, offset: u64) -> kvik::Result<usize> {
        let counts =
            self.read_ranges(&mut [ReadPiece::new(offset, target)], |memory, places| {
                let [place] = places else { panic!("one piece") };
                let count = self.handle.read_at(memory.target(place.clone()), offset)?;
                Ok(vec![count])
            })?;
        Ok(counts[0])
    }

    fn len(&self) -> kvik::Result<u64> {
        self.handle.len()
    }

    fn read_ranges(&self, pieces: &mut [ReadPiece<'_>]) -> kvik::Result<Vec<usize>> {
        let offsets: Vec<_> = pieces.iter().map(ReadPiece::offset).collect();
        self.read_ranges(pieces, |memory, places| {
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

impl OpenFile {
    /// Has `read` fill places on the device, looks that nothing else was touched there, and hands on what came.
    fn read_ranges(
        &self,
        pieces: &mut [ReadPiece<'_>],
        read: impl FnOnce(&mut Memory, &[std::ops::Range<usize>]) -> kvik::Result<Vec<usize>>,
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

impl Opened for OpenFile {
    fn reader(&self) -> &dyn ReadAt {
        self
    }

    fn submit_read(&self, buffer: Vec<u8>, offset: u64) -> Box<dyn InFlight> {
        let pending = self.handle.submit_read(self.holding(&buffer), offset);
        Box::new(OnDevice(pending))
    }

    fn writer(&self) -> Option<&dyn Writer> {
        Some(self)
    }
}

impl Writer for OpenFile {
    fn write_at(&self, source: &[u8], offset: u64) -> kvik::Result<usize> {
        let (mut memory, places) = self.room([source.len()].into_iter());
        memory.put(places[0].start, source);
        let source = memory.source(places[0].clone());
        self.handle.write_at(source, offset)
    }

    fn write_ranges(&self, pieces: &[WritePiece<'_>]) -> kvik::Result<usize> {
        let bytes = |piece: &WritePiece<'_>| piece.source().bytes().unwrap().to_vec();
        let (mut memory, places) = self.room(pieces.iter().map(|piece| piece.source().len()));
        for (piece, place) in pieces.iter().zip(&places) {
            memory.put(place.start, &bytes(piece));
        }
        let pieces: Vec<_> = pieces
            .iter()
            .zip(places)
            .map(|(piece, place)| WritePiece::new(piece.offset(), memory.source(place)))
            .collect();
        self.handle.write_ranges(&pieces)
    }

    fn submit_write(&self, source: Vec<u8>, offset: u64) -> Box<dyn InFlight> {
        let pending = self.handle.submit_write(self.holding(&source), offset);
        Box::new(OnDevice(pending))
    }

    fn set_len(&self, len: u64) -> kvik::Result<()> {
        self.handle.set_len(len)
    }

    fn stored(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap()
    }
}

struct OnDevice(Pending<DeviceBuffer>);

impl InFlight for OnDevice {
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
