//! One large write from memory of the device to the start of a file that is kept in memory.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::contender::Contender;
use crate::data::STEP;
use crate::gpu::loops::{WriteLoop, WriteWay};
use crate::gpu::{Checker, DeviceMemory};
use crate::ours::Ours;
use crate::pattern;
use crate::race::{Amounts, Moved, Scene};
use crate::trouble::{Doing, Outcome, Trouble};

pub(crate) struct WriteScene<'a> {
    name: String,
    path: PathBuf,
    file: File,
    len: u64,
    memory: &'a mut DeviceMemory,
    checker: &'a mut Checker,
    ours: Ours,
    loops: Vec<WriteLoop>,
}

impl<'a> WriteScene<'a> {
    /// `path` is overwritten, and has `len` bytes.
    pub(crate) fn new(
        name: &str,
        path: &Path,
        len: u64,
        (memory, checker): (&'a mut DeviceMemory, &'a mut Checker),
        ours: Ours,
        loops: Vec<WriteLoop>,
    ) -> Outcome<Self> {
        let mut options = File::options();
        let file = options.read(true).write(true).open(path);
        let file = file.doing("open", path)?;
        // The first turn that reaches a place of the file would have to find room for it, and nobody after it.
        let zeros = vec![0; STEP as usize];
        for at in (0..len).step_by(STEP as usize) {
            let piece = &zeros[..(len - at).min(STEP) as usize];
            file.write_all_at(piece, at).doing("write", path)?;
        }
        Ok(Self {
            name: name.to_owned(),
            path: path.to_owned(),
            file,
            len,
            memory,
            checker,
            ours,
            loops,
        })
    }
}

impl Scene for WriteScene<'_> {
    fn contenders(&self) -> Vec<Contender> {
        let loops = self.loops.iter().map(WriteLoop::contender);
        std::iter::once(Contender::ours()).chain(loops).collect()
    }

    fn amounts(&self) -> Amounts {
        let most = self.len / STEP * STEP;
        Amounts {
            least: (most / 8).next_multiple_of(STEP).min(most),
            most,
            step: STEP,
        }
    }

    /// A content of its own for every turn.
    fn prepare(&mut self, _: usize, amount: u64, salt: u64) -> Outcome<()> {
        let make = |at: usize, bytes: &mut [u8]| pattern::fill(bytes, salt, at as u64);
        let put = self.checker.put(self.memory, amount as usize, make);
        put.doing("fill the device's memory for", &self.path)
    }

    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
        match who.checked_sub(1) {
            None => {
                let source = self.memory.source(0, amount as usize)?;
                self.ours.write(source)?;
            }
            Some(at) => self.loops[at]
                .run(&self.file, self.memory, amount)
                .doing("write from the device", &self.path)?,
        }
        Ok(Moved::here(amount, 1))
    }

    fn check(&mut self, who: usize, amount: u64, salt: u64) -> Outcome<()> {
        let brings = who
            .checked_sub(1)
            .is_none_or(|at| self.loops[at].way() == WriteWay::Both);
        if !brings {
            return Ok(());
        }
        let judge = |at: usize, bytes: &[u8]| {
            let wrong = pattern::first_difference(bytes, salt, at as u64);
            wrong.map(|byte| (at + byte) as u64)
        };
        let wrong = self.checker.read_back(&self.file, amount as usize, judge);
        match wrong.doing("read back", &self.path)? {
            None => Ok(()),
            Some(position) => Err(Trouble::Mismatch {
                case: self.name.clone(),
                contender: self.contenders()[who].name.clone(),
                position,
            }),
        }
    }

    /// Every byte of every turn has been compared.
    fn prove(&mut self, _: u64) -> Outcome<()> {
        Ok(())
    }
}
