//! The door of local files whose bytes go to a device and come from one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kvik::{EnginePreference, FileHandle, Layer, ReadAt, WritePiece};

use super::files::file;
use super::on_device::{Flying, OnDevice};
use super::{Door, InFlight, Opened, Setting, Writer};
use crate::gpu::{Gpu, Kind};

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
        let device = OnDevice {
            gpu: Arc::clone(&self.gpu),
            kind: self.kind,
            handle,
        };
        Box::new(OpenFile { device, path })
    }

    fn writes(&self) -> bool {
        true
    }
}

struct OpenFile {
    device: OnDevice<FileHandle>,
    path: tempfile::TempPath,
}

impl Opened for OpenFile {
    fn reader(&self) -> &dyn ReadAt {
        &self.device
    }

    fn submit_read(&self, buffer: Vec<u8>, offset: u64) -> Box<dyn InFlight> {
        self.device.submit(&buffer, offset)
    }

    fn writer(&self) -> Option<&dyn Writer> {
        Some(self)
    }
}

impl Writer for OpenFile {
    fn write_at(&self, source: &[u8], offset: u64) -> kvik::Result<usize> {
        let (mut memory, places) = self.device.room([source.len()].into_iter());
        memory.put(places[0].start, source);
        let source = memory.source(places[0].clone());
        self.device.handle.write_at(source, offset)
    }

    fn write_ranges(&self, pieces: &[WritePiece<'_>]) -> kvik::Result<usize> {
        let bytes = |piece: &WritePiece<'_>| piece.source().bytes().unwrap().to_vec();
        let lengths = pieces.iter().map(|piece| piece.source().len());
        let (mut memory, places) = self.device.room(lengths);
        for (piece, place) in pieces.iter().zip(&places) {
            memory.put(place.start, &bytes(piece));
        }
        let pieces: Vec<_> = pieces
            .iter()
            .zip(places)
            .map(|(piece, place)| WritePiece::new(piece.offset(), memory.source(place)))
            .collect();
        self.device.handle.write_ranges(&pieces)
    }

    fn submit_write(&self, source: Vec<u8>, offset: u64) -> Box<dyn InFlight> {
        let source = self.device.holding(&source);
        Box::new(Flying(self.device.handle.submit_write(source, offset)))
    }

    fn set_len(&self, len: u64) -> kvik::Result<()> {
        self.device.handle.set_len(len)
    }

    fn stored(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap()
    }
}
