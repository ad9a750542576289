//! A large read out of the page cache in the order of a stream: by itself, or as pieces that are all queued before the first
//! is there, with a kernel behind each that takes as long as it.

use std::time::{Duration, Instant};

use crate::contender::{Contender, Role};
use crate::data::{Data, STEP};
use crate::figures::{median, spread};
use crate::gpu::loops::FlaggedLoop;
use crate::gpu::{Checker, DeviceMemory, Gpu, Line};
use crate::ours::{OnStream, Ours};
use crate::pattern;
use crate::race::{Amounts, Moved, Scene};
use crate::trouble::{Doing, Outcome, Trouble};

/// What the reads are queued as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    /// One read.
    Alone,
    /// Pieces, with a kernel behind each.
    WithKernels,
}

pub(crate) struct StreamScene<'a> {
    name: String,
    data: &'a Data,
    memory: &'a DeviceMemory,
    checker: &'a mut Checker,
    ours: Ours,
    flagged: FlaggedLoop,
    line: Line,
    amount: u64,
    piece: u64,
    /// How long the kernel behind each piece takes.
    kernels: Option<Duration>,
    ways: &'static [Way],
    /// Of each way, how long it was in each turn until all was queued.
    queued: Vec<Vec<Duration>>,
}

/// Who takes part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Ours,
    Loop,
    /// kvik, by calls that return when the bytes are there.
    Waiting,
    ReadsAlone,
    KernelsAlone,
}

impl<'a> StreamScene<'a> {
    pub(crate) fn new(
        name: &str,
        data: &'a Data,
        (memory, checker): (&'a DeviceMemory, &'a mut Checker),
        (gpu, threads): (&std::sync::Arc<Gpu>, usize),
        ours: Ours,
        what: Queued,
    ) -> Outcome<Self> {
        let amount = data.len.min(MOST) / STEP * STEP;
        let (piece, ways): (_, &[Way]) = match what {
            Queued::Alone => (amount, &[Way::Ours, Way::Loop, Way::Waiting]),
            Queued::WithKernels => (
                amount / PIECES,
                &[Way::Ours, Way::Loop, Way::ReadsAlone, Way::KernelsAlone],
            ),
        };
        let prepare = "prepare a stream to read";
        let mut flagged =
            FlaggedLoop::new(gpu, threads, amount, piece).doing(prepare, &data.path)?;
        let line = Line::new(gpu).doing(prepare, &data.path)?;
        let mut kernels = None;
        if what == Queued::WithKernels {
            // The second time nothing is new.
            for _ in 0..2 {
                let began = Instant::now();
                let done = flagged.run(&data.file, memory, &line, None);
                done.doing("read to the device", &data.path)?;
                kernels = Some(began.elapsed() / PIECES as u32);
            }
        }
        Ok(Self {
            name: name.to_owned(),
            data,
            memory,
            checker,
            ours,
            flagged,
            line,
            amount,
            piece,
            kernels,
            ways,
            queued: vec![Vec::new(); ways.len()],
        })
    }

    /// One turn of any way; how long it was until all was queued, where that is another time.
    fn go(&mut self, way: Way) -> Outcome<Option<Duration>> {
        let (amount, path) = (self.amount as usize, &self.data.path);
        let reading = "read to the device";
        Ok(match way {
            Way::Ours => Some(self.ours_on_stream(self.kernels)?),
            Way::ReadsAlone => Some(self.ours_on_stream(None)?),
            Way::Loop => {
                let done =
                    (self.flagged).run(&self.data.file, self.memory, &self.line, self.kernels);
                Some(done.doing(reading, path)?)
            }
            Way::Waiting => {
                // SAFETY: one contender runs at a time.
                let target = unsafe { self.memory.shared_target(0, amount) }?;
                self.ours.read_to(target, 0)?;
                None
            }
            Way::KernelsAlone => {
                for _ in 0..PIECES {
                    let queued = self.line.queue_kernel(self.kernels.unwrap_or_default());
                    queued.doing("queue a kernel before", path)?;
                }
                self.line.wait().doing("wait for kernels before", path)?;
                None
            }
        })
    }

    fn ours_on_stream(&self, kernels: Option<Duration>) -> Outcome<Duration> {
        let began = Instant::now();
        let mut reads = Vec::with_capacity(PIECES as usize);
        for at in (0..self.amount).step_by(self.piece as usize) {
            // SAFETY: one contender runs at a time, and pieces do not overlap.
            let target = unsafe { self.memory.shared_target(at as usize, self.piece as usize) }?;
            // SAFETY: the same, until all of them were waited for.
            let read = unsafe { self.ours.read_on_stream(target, at, self.line.raw()) }?;
            reads.push(read);
            if let Some(time) = kernels {
                self.line
                    .queue_kernel(time)
                    .doing("queue a kernel behind", &self.data.path)?;
            }
        }
        let queued = began.elapsed();
        reads.into_iter().try_for_each(OnStream::wait)?;
        self.line
            .wait()
            .doing("wait for reads of", &self.data.path)?;
        Ok(queued)
    }
}

impl Scene for StreamScene<'_> {
    fn contenders(&self) -> Vec<Contender> {
        let kernels = self.kernels.map_or_else(String::new, |time| {
            format!(", kernels of {:.1} ms behind", time.as_secs_f64() * 1e3)
        });
        let contender = |way: &Way| match way {
            Way::Ours => Contender::ours(),
            Way::Loop => {
                let Contender { role, name } = self.flagged.contender();
                Contender::new(role, name + &kernels)
            }
            Way::Waiting => Contender::new(Role::Engine, "kvik, a call that waits"),
            Way::ReadsAlone => Contender::new(Role::Part, "kvik, reads alone"),
            Way::KernelsAlone => Contender::new(Role::Part, "kernels alone"),
        };
        self.ways.iter().map(contender).collect()
    }

    fn amounts(&self) -> Amounts {
        Amounts {
            least: self.amount,
            most: self.amount,
            step: STEP,
        }
    }

    fn prepare(&mut self, _: usize, amount: u64, salt: u64) -> Outcome<()> {
        // Whatever the turn leaves out has the wrong bytes of this turn, and not the right ones of the last.
        let filled = self.memory.fill(salt as u8, amount as usize);
        filled.doing("fill the device's memory for", &self.data.path)
    }

    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
        if let Some(queued) = self.go(self.ways[who])? {
            self.queued[who].push(queued);
        }
        Ok(Moved::here(amount, 1))
    }

    fn check(&mut self, who: usize, amount: u64, _: u64) -> Outcome<()> {
        let (Some(seed), true) = (self.data.seed, self.ways[who] != Way::KernelsAlone) else {
            return Ok(());
        };
        let judge = |at: usize, bytes: &[u8]| {
            let wrong = pattern::first_difference(bytes, seed, at as u64);
            wrong.map(|byte| (at + byte) as u64)
        };
        let wrong = self.checker.look(self.memory, amount as usize, judge);
        match wrong.doing("compare the device's memory with", &self.data.path)? {
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

    fn remarks(&self) -> Vec<String> {
        let contenders = self.contenders();
        let told = |(who, all): (usize, &Vec<Duration>)| {
            // Without the lap before the rounds.
            let rounds = all.iter().skip(1);
            let milliseconds: Vec<_> = rounds.map(|time| time.as_secs_f64() * 1e3).collect();
            let (middle, (least, most)) = (median(&milliseconds)?, spread(&milliseconds)?);
            let name = &contenders[who].name;
            Some(format!(
                "{}: {name}: all of it was queued after {middle:.2} ms ({least:.2}-{most:.2})",
                self.name
            ))
        };
        self.queued.iter().enumerate().filter_map(told).collect()
    }
}

// What a launch queue has room for; a loop has three entries there for each of its chunks.
const MOST: u64 = 1 << 30;
const PIECES: u64 = 16;
