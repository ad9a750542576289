//! Copying front to back: for files that tell no size but have bytes, as in /proc.

use kvik::FileHandle;

use crate::failure::Result;
use crate::progress::Progress;
use crate::stop::Stop;

use super::medium::Medium;
use super::pump::interrupted;

/// Copies through this memory until a read finds nothing, and returns how many bytes that were.
pub(super) fn copy(
    source: &FileHandle,
    target: &FileHandle,
    mut medium: impl Medium,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<u64> {
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        interrupted(stop)?;
        let count = source.read_at(&mut buffer, done)?;
        if count == 0 {
            return Ok(done);
        }
        medium.pass_on(&buffer[..count], target, done)?;
        done += count as u64;
        progress.advance(count as u64);
    }
}
