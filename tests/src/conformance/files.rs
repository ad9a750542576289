//! The door of local files.

use std::path::{Path, PathBuf};

use kvik::{EngineKind, EnginePreference, FileHandle, ReadAt, WritePiece};

use super::{Door, InFlight, Opened, Setting, Writer};

/// The door of local files: [`FileHandle`] on files in a folder.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
    engine: EnginePreference,
    cached: Cached,
}

/// How much of a file is in the page cache before each read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached {
    /// Whatever is.
    AsItComes,
    /// Nothing. The file lies on a disk.
    Nothing,
    /// Of each MiB, the first half at most. The file lies on a disk.
    Half,
}

impl Files {
    /// Files in `folder`, which decides the file system.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Files {
        Files {
            folder: folder.to_owned(),
            engine: EnginePreference::Auto,
            cached: Cached::AsItComes,
        }
    }

    /// The same, moved by this engine and no other.
    #[must_use]
    pub fn only(self, engine: EngineKind) -> Files {
        Files {
            engine: EnginePreference::Only(engine),
            ..self
        }
    }

    /// The same, with so much in the page cache before each read.
    #[must_use]
    pub fn cached(self, cached: Cached) -> Files {
        Files { cached, ..self }
    }
}

/// A file in `folder` that holds `bytes`; taken away on drop.
pub(super) fn file(folder: &Path, bytes: &[u8]) -> tempfile::TempPath {
    let file = tempfile::Builder::new()
        .prefix("exam-")
        .tempfile_in(folder)
        .unwrap();
    let path = file.into_temp_path();
    std::fs::write(&path, bytes).unwrap();
    path
}

impl Door for Files {
    fn open(&self, bytes: &[u8], setting: &Setting) -> Box<dyn Opened> {
        let path = file(&self.folder, bytes);
        let handle = FileHandle::options()
            .read(true)
            .write(true)
            .engine(self.engine)
            .open_with(&path, &setting.config())
            .unwrap();
        Box::new(OpenFile {
            handle,
            path,
            cached: self.cached,
        })
    }

    fn writes(&self) -> bool {
        true
    }
}

struct OpenFile {
    handle: FileHandle,
    path: tempfile::TempPath,
    cached: Cached,
}

impl OpenFile {
    fn drop_pages(&self) {
        let path: &Path = &self.path;
        let drop = |offset, len| kvik::drop_file_page_cache(path, offset, len, true).unwrap();
        match self.cached {
            Cached::AsItComes => {}
            Cached::Nothing => drop(0, 0),
            Cached::Half => {
                let halves = (0..self.handle.len().unwrap()).step_by(1 << 20);
                halves.for_each(|offset| drop(offset + (1 << 19), 1 << 19));
            }
        }
    }
}

impl Opened for OpenFile {
    fn reader(&self) -> &dyn ReadAt {
        self.drop_pages();
        &self.handle
    }

    fn submit_read(&self, buffer: Vec<u8>, offset: u64) -> Box<dyn InFlight> {
        self.drop_pages();
        Box::new(self.handle.submit_read(buffer, offset))
    }

    fn writer(&self) -> Option<&dyn Writer> {
        Some(self)
    }
}

impl Writer for OpenFile {
    fn write_at(&self, source: &[u8], offset: u64) -> kvik::Result<usize> {
        self.handle.write_at(source, offset)
    }

    fn write_ranges(&self, pieces: &[WritePiece<'_>]) -> kvik::Result<usize> {
        self.handle.write_ranges(pieces)
    }

    fn submit_write(&self, source: Vec<u8>, offset: u64) -> Box<dyn InFlight> {
        Box::new(self.handle.submit_write(source, offset))
    }

    fn set_len(&self, len: u64) -> kvik::Result<()> {
        self.handle.set_len(len)
    }

    fn stored(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap()
    }
}
