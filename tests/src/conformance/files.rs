//! The door of local files.

use std::path::{Path, PathBuf};

use kvik::{EngineKind, EnginePreference, FileHandle, ReadAt, WritePiece};

use super::{Door, InFlight, Opened, Setting, Writer};

/// The door of local files: [`FileHandle`] on files in a folder.
#[derive(Clone, Debug)]
pub struct Files {
    folder: PathBuf,
    engine: EnginePreference,
}

impl Files {
    /// Files in `folder`, which decides the file system.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Files {
        Files {
            folder: folder.to_owned(),
            engine: EnginePreference::Auto,
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
        Box::new(OpenFile { handle, path })
    }

    fn writes(&self) -> bool {
        true
    }
}

struct OpenFile {
    handle: FileHandle,
    path: tempfile::TempPath,
}

impl Opened for OpenFile {
    fn reader(&self) -> &dyn ReadAt {
        &self.handle
    }

    fn submit_read(&self, buffer: Vec<u8>, offset: u64) -> Box<dyn InFlight> {
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
