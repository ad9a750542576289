//! The file as it lies on its storage: how long it is, where its holes are, and from when on it lasts.

use std::io;
use std::ops::Range;

use nix::errno::Errno;
use nix::unistd::Whence;

use super::FileHandle;
use crate::error::{Error, ErrorKind, Op, Result};
use crate::open;

impl FileHandle {
    /// The size in bytes, asked of the operating system each time; of a block device, its capacity. Files of `/proc` say
    /// 0 whatever they hold.
    ///
    /// # Errors
    /// `Io` if the operating system cannot tell.
    pub fn len(&self) -> Result<u64> {
        open::size(&self.0.file).map_err(|error| error.at(&self.0.place))
    }

    /// Whether the size is 0.
    ///
    /// # Errors
    /// As for [`len`](FileHandle::len).
    pub fn is_empty(&self) -> Result<bool> {
        self.len().map(|len| len == 0)
    }

    /// Makes the file `len` bytes long: cuts it, or adds a hole that reads as zeros.
    ///
    /// # Errors
    /// `PermissionDenied`, `StorageFull` or `Misuse` as the operating system says.
    pub fn set_len(&self, len: u64) -> Result<()> {
        self.may_write()?;
        if i64::try_from(len).is_err() {
            let why = format!("{len} bytes are more than the longest file, {}", i64::MAX);
            return Err(Error::new(ErrorKind::Misuse, Op::SetLen, why).at(&self.0.place));
        }
        self.0
            .file
            .set_len(len)
            .map_err(|cause| self.error(Op::SetLen, cause))
    }

    /// Waits until data and metadata are on the storage (`fsync`).
    ///
    /// # Errors
    /// `Io` or `StorageFull`: written data may be lost, and asking again does not bring it back.
    pub fn sync(&self) -> Result<()> {
        self.0
            .file
            .sync_all()
            .map_err(|cause| self.error(Op::Sync, cause))
    }

    /// Waits until the data, and the metadata needed to read it, are on the storage (`fdatasync`).
    ///
    /// # Errors
    /// As for [`sync`](FileHandle::sync).
    pub fn sync_data(&self) -> Result<()> {
        self.0
            .file
            .sync_data()
            .map_err(|cause| self.error(Op::Sync, cause))
    }

    /// The parts of `range` that hold data, in rising order; what lies between reads as zeros and takes no space. A file
    /// system that knows no holes gives the whole range.
    ///
    /// # Errors
    /// `Io` if the operating system cannot tell.
    pub fn data_extents(&self, range: Range<u64>) -> Result<Vec<Range<u64>>> {
        let end = range.end.min(self.len()?);
        let mut extents = Vec::new();
        let mut at = range.start;
        while at < end {
            let Some(start) = self
                .seek(at, Whence::SeekData)?
                .filter(|start| *start < end)
            else {
                break;
            };
            let stop = self.seek(start, Whence::SeekHole)?.unwrap_or(end).min(end);
            extents.push(start..stop);
            at = stop;
        }
        Ok(extents)
    }

    fn seek(&self, from: u64, whence: Whence) -> Result<Option<u64>> {
        let start = i64::try_from(from).map_err(|_| self.os_error(Errno::EOVERFLOW))?;
        let seeks_data = matches!(whence, Whence::SeekData);
        match nix::unistd::lseek(&*self.0.file, start, whence) {
            Ok(at) => Ok(Some(at as u64)),
            Err(Errno::ENXIO) => Ok(None),
            // A file system that knows no holes: data begins here and goes on to the end.
            Err(Errno::EINVAL | Errno::EOPNOTSUPP) => Ok(seeks_data.then_some(from)),
            Err(errno) => Err(self.os_error(errno)),
        }
    }

    fn os_error(&self, errno: Errno) -> Error {
        Error::os(Op::Inspect, errno).at(&self.0.place)
    }

    fn error(&self, op: Op, cause: io::Error) -> Error {
        Error::io(op, cause).at(&self.0.place)
    }
}
