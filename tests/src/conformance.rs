//! The exam that every door sits: random operations on an object and on a `Vec<u8>`, whose answers must be the same.
//!
//! A door says how it opens an object with given bytes ([`Door`]), and what the opened object can do besides reading
//! ([`Opened`]). The exam goes over thread counts and task sizes and checks, after each operation, the bytes, the count,
//! the kind of error, and that nothing outside the count was touched. [`Files`] is the door of local files,
//! [`DeviceFiles`] that of local files whose bytes go to a device and come from one.
//!
//! # Example: a door that only reads
//! ```no_run
//! use kvik::{FileHandle, ReadAt};
//! use kvik_tests::conformance::{Door, InFlight, Opened, Setting, exam};
//!
//! struct MyDoor;
//! struct MyObject(FileHandle);
//! impl Door for MyDoor {
//!     fn open(&self, bytes: &[u8], setting: &Setting) -> Box<dyn Opened> {
//!         std::fs::write("object", bytes).unwrap();
//!         Box::new(MyObject(FileHandle::options().read(true).open_with("object", &setting.config()).unwrap()))
//!     }
//! }
//! impl Opened for MyObject {
//!     fn reader(&self) -> &dyn ReadAt { &self.0 }
//!     fn submit_read(&self, buffer: Vec<u8>, offset: u64) -> Box<dyn InFlight> { Box::new(self.0.submit_read(buffer, offset)) }
//! }
//! exam(&MyDoor);
//! ```

mod device_files;
mod files;
mod maps;
mod on_device;
mod ranges;
mod remote;

use kvik::{ByteSize, Config, ErrorKind, Layer, Pending, ReadAt, ReadAtExt, Target, WritePiece};
use proptest::prelude::*;
use proptest::test_runner::{
    Config as Cases, RngAlgorithm, TestCaseError, TestCaseResult, TestRng, TestRunner,
};

use crate::model::{Extent, Model, Operation, Place, Scale, operations};
use crate::pattern::{UNTOUCHED, first_difference, pattern};

pub use device_files::DeviceFiles;
pub use files::{Cached, Files};
pub use maps::Maps;
pub use remote::Remote;

/// A way to objects: what sits the exam.
pub trait Door {
    /// Makes an object that holds `bytes` and opens it with this setting.
    fn open(&self, bytes: &[u8], setting: &Setting) -> Box<dyn Opened>;

    /// Whether its objects can be written to; then [`Opened::writer`] gives something.
    fn writes(&self) -> bool {
        false
    }
}

/// An object that a door has opened. It is taken away on drop.
pub trait Opened {
    /// Reads it.
    fn reader(&self) -> &dyn ReadAt;

    /// Starts a read.
    fn submit_read(&self, buffer: Vec<u8>, offset: u64) -> Box<dyn InFlight>;

    /// Writes it.
    fn writer(&self) -> Option<&dyn Writer> {
        None
    }
}

/// What an object that can be written to can do.
pub trait Writer {
    /// Writes all of `source`; returns the count.
    fn write_at(&self, source: &[u8], offset: u64) -> kvik::Result<usize>;

    /// Writes all pieces, each an offset and its bytes; returns the sum of their lengths.
    fn write_ranges(&self, pieces: &[WritePiece<'_>]) -> kvik::Result<usize>;

    /// Starts a write.
    fn submit_write(&self, source: Vec<u8>, offset: u64) -> Box<dyn InFlight>;

    /// Cuts or extends it.
    fn set_len(&self, len: u64) -> kvik::Result<()>;

    /// What somebody else finds in it, asked without kvik.
    fn stored(&self) -> Vec<u8>;
}

/// A transfer in the background. Dropping it cancels what has not started and waits for what has.
pub trait InFlight {
    /// Stops what has not started.
    fn cancel(&self);

    /// Waits for it; gives its outcome, and the bytes of its buffer.
    fn finish(self: Box<Self>) -> (kvik::Result<usize>, Vec<u8>);
}

impl InFlight for Pending<Vec<u8>> {
    fn cancel(&self) {
        Pending::cancel(self);
    }

    fn finish(self: Box<Self>) -> (kvik::Result<usize>, Vec<u8>) {
        Pending::finish(*self)
    }
}

/// How the object is read and written.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The setting `num_threads`.
    pub threads: usize,
    /// The setting `task_size`, in bytes.
    pub task_size: usize,
    /// Whether small transfers may run without the pool: the setting `inline_size` is its default, or 0.
    pub inline: bool,
}

impl Setting {
    /// As settings of a handle.
    #[must_use]
    pub fn config(&self) -> Config {
        let layer = Layer::new()
            .num_threads(self.threads)
            .task_size(ByteSize::new(self.task_size as u64));
        let inline = if self.inline {
            layer
        } else {
            layer.inline_size(ByteSize::new(0))
        };
        Config::resolve([inline]).unwrap()
    }

    fn scale(&self) -> Scale {
        // Some tasks to each read, and never so many that a case takes seconds.
        let room = if self.task_size < 512 {
            6000
        } else {
            (self.task_size * 5 / 2).clamp(20_000, 9 << 20)
        };
        Scale {
            task_size: self.task_size,
            room,
            // For tasks of a byte: hundreds of them across any boundary, but not thousands, each a turn of a device.
            longest: room.min(self.task_size * 640),
        }
    }
}

/// Sits the exam with every thread count and task size. The cases are the same in each run.
///
/// # Panics
/// At the first answer that is wrong, with the shortest row of operations that leads there.
#[track_caller]
pub fn exam(door: &dyn Door) {
    exam_of_tasks(door, &TASK_SIZES, 1);
}

/// As [`exam`], with the large tasks alone: for what small ones have no part in.
///
/// # Panics
/// As `exam`.
#[track_caller]
pub fn exam_of_large_tasks(door: &dyn Door) {
    exam_of_tasks(door, &TASK_SIZES[4..], 1);
}

/// As [`exam`], with one case of `share`: for a door of which there are many variants, or that takes its time.
///
/// # Panics
/// As `exam`.
#[track_caller]
pub fn short_exam(door: &dyn Door, share: u32) {
    exam_of_tasks(door, &TASK_SIZES, share);
}

#[track_caller]
fn exam_of_tasks(door: &dyn Door, task_sizes: &[usize], share: u32) {
    for &task_size in task_sizes {
        // Large tasks need large objects, and take their time.
        let cases = match task_size {
            0..=65_535 => 60_u32,
            65_536..=1_048_576 => 6,
            _ => 3,
        };
        let cases = cases.div_ceil(share);
        for threads in THREADS {
            let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
            sit(
                door,
                threads,
                task_size,
                |cases| TestRunner::new_with_rng(cases, rng.clone()),
                cases,
            );
        }
    }
}

/// As [`exam`], with `cases` cases for each thread count and task size, and others in each run.
#[track_caller]
pub fn long_exam(door: &dyn Door, cases: u32) {
    for task_size in TASK_SIZES {
        for threads in THREADS {
            sit(door, threads, task_size, TestRunner::new, cases);
        }
    }
}

#[track_caller]
fn sit(
    door: &dyn Door,
    threads: usize,
    task_size: usize,
    runner: impl Fn(Cases) -> TestRunner,
    cases: u32,
) {
    let mut runner = runner(Cases {
        cases,
        failure_persistence: None,
        // In milliseconds: a failure is to be seen before a time limit ends the test.
        max_shrink_time: 20_000,
        ..Cases::default()
    });
    let paper = (any::<bool>(), any::<u16>(), operations(door.writes()));
    let outcome = runner.run(&paper, |(inline, fraction, operations)| {
        let setting = Setting {
            threads,
            task_size,
            inline,
        };
        let scale = setting.scale();
        let mut model = Model::new((scale.room * usize::from(fraction)) >> 16);
        let object = door.open(model.bytes(), &setting);
        for operation in &operations {
            answer(&*object, &mut model, operation, scale)
                .map_err(|error| TestCaseError::fail(format!("{operation:?}: {error}")))?;
        }
        match object.writer() {
            Some(writer) => same("what was stored", &writer.stored(), model.bytes()),
            None => Ok(()),
        }
    });
    if let Err(failure) = outcome {
        panic!(
            "with {threads} threads and tasks of {task_size} bytes (inline, length, operations): {failure}"
        );
    }
}

/// Does one operation with both and compares.
fn answer(
    object: &dyn Opened,
    model: &mut Model,
    operation: &Operation,
    scale: Scale,
) -> TestCaseResult {
    let read = |place: Place, extent: Extent, model: &Model| {
        let offset = place.offset(model.len(), scale);
        (offset, extent.len(offset, model.len(), scale))
    };
    match operation {
        Operation::Read(place, extent, skew) => {
            let (offset, len) = read(*place, *extent, model);
            let mut memory = vec![UNTOUCHED; skew + len + GUARD];
            let outcome = object
                .reader()
                .read_at(Target::from(&mut memory[*skew..skew + len]), offset);
            let expected = model.read(offset, len);
            counted(outcome, expected.len())?;
            same(
                "before the target",
                &memory[..*skew],
                &vec![UNTOUCHED; *skew],
            )?;
            landed(&memory[*skew..skew + len], expected)?;
            same(
                "behind the target",
                &memory[skew + len..],
                &[UNTOUCHED; GUARD],
            )
        }
        Operation::ReadExact(place, extent) => {
            let (offset, len) = read(*place, *extent, model);
            let mut memory = vec![UNTOUCHED; len];
            let outcome = object.reader().read_exact_at(&mut memory, offset);
            let expected = model.read(offset, len);
            match outcome {
                Ok(()) if expected.len() == len => {}
                Err(error) if expected.len() < len => {
                    prop_assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{}", error);
                    prop_assert_eq!(error.done(), expected.len() as u64, "{}", error);
                    prop_assert_eq!(
                        error.range(),
                        Some(offset..offset + len as u64),
                        "{}",
                        error
                    );
                }
                outcome => prop_assert!(
                    false,
                    "{:?} where {} of {} bytes are",
                    outcome,
                    expected.len(),
                    len
                ),
            }
            landed(&memory, expected)
        }
        Operation::ReadToEnd(place) => {
            let offset = place.offset(model.len(), scale);
            match object.reader().read_to_end(offset) {
                Ok(bytes) => same("read to the end", &bytes, model.read(offset, usize::MAX)),
                Err(error) => Err(TestCaseError::fail(error.to_string())),
            }
        }
        Operation::ReadRanges(parts) => {
            let ranges: Vec<_> = parts
                .iter()
                .map(|(place, extent)| read(*place, *extent, model))
                .collect();
            ranges::read(object.reader(), &ranges, model)
        }
        Operation::Submit(place, extent) => {
            let (offset, len) = read(*place, *extent, model);
            let (outcome, memory) = object.submit_read(vec![UNTOUCHED; len], offset).finish();
            let expected = model.read(offset, len);
            counted(outcome, expected.len())?;
            landed(&memory, expected)
        }
        Operation::SubmitMany(parts) => {
            let parts: Vec<_> = parts
                .iter()
                .map(|(place, extent)| read(*place, *extent, model))
                .collect();
            let start =
                |&(offset, len): &(u64, usize)| object.submit_read(vec![UNTOUCHED; len], offset);
            let pending: Vec<_> = parts.iter().map(start).collect();
            for (pending, (offset, len)) in pending.into_iter().zip(parts).rev() {
                let (outcome, memory) = pending.finish();
                let expected = model.read(offset, len);
                counted(outcome, expected.len())?;
                landed(&memory, expected)?;
            }
            Ok(())
        }
        Operation::Cancel(place, extent) => {
            let (offset, len) = read(*place, *extent, model);
            let pending = object.submit_read(vec![UNTOUCHED; len], offset);
            pending.cancel();
            let (outcome, memory) = pending.finish();
            let expected = model.read(offset, len);
            match outcome {
                Ok(count) => {
                    counted(Ok(count), expected.len())?;
                    landed(&memory, expected)
                }
                Err(error) => {
                    prop_assert_eq!(error.kind(), ErrorKind::Cancelled, "{}", error);
                    let done = error.done() as usize;
                    prop_assert!(done <= expected.len(), "{}", error);
                    same("what was moved before", &memory[..done], &expected[..done])
                }
            }
        }
        Operation::Abandon(place, extent) => {
            let (offset, len) = read(*place, *extent, model);
            drop(object.submit_read(vec![UNTOUCHED; len], offset));
            Ok(())
        }
        Operation::Len => {
            prop_assert_eq!(
                object.reader().len().map_err(|error| error.to_string()),
                Ok(model.len() as u64)
            );
            Ok(())
        }
        Operation::Write(place, extent, seed) => {
            let (offset, source) = source(*place, *extent, *seed, model, scale);
            counted(
                writer(object)?.write_at(&source, offset as u64),
                source.len(),
            )?;
            model.write(offset, &source);
            Ok(())
        }
        Operation::WriteRanges(parts, seed) => {
            let sources: Vec<_> = parts
                .iter()
                .map(|(place, extent)| source(*place, *extent, *seed, model, scale))
                .collect();
            ranges::write(writer(object)?, &sources, model)
        }
        Operation::SubmitWrite(place, extent, seed) => {
            let (offset, source) = source(*place, *extent, *seed, model, scale);
            let (outcome, buffer) = writer(object)?
                .submit_write(source.clone(), offset as u64)
                .finish();
            counted(outcome, source.len())?;
            same("the buffer that comes back", &buffer, &source)?;
            model.write(offset, &source);
            Ok(())
        }
        Operation::SetLen(place) => {
            let len = place.offset_in_room(model.len(), scale);
            prop_assert_eq!(
                writer(object)?
                    .set_len(len as u64)
                    .map_err(|error| error.to_string()),
                Ok(())
            );
            model.set_len(len);
            Ok(())
        }
    }
}

fn source(place: Place, extent: Extent, seed: u8, model: &Model, scale: Scale) -> (usize, Vec<u8>) {
    let offset = place.offset_in_room(model.len(), scale);
    let len = extent
        .len(offset as u64, model.len(), scale)
        .min(scale.room - offset);
    (offset, pattern(u64::from(seed) + 1, offset as u64, len))
}

fn writer(object: &dyn Opened) -> Result<&dyn Writer, TestCaseError> {
    object.writer().ok_or_else(|| {
        TestCaseError::fail("a door that writes opened an object that cannot be written to")
    })
}

fn counted(outcome: kvik::Result<usize>, expected: usize) -> TestCaseResult {
    prop_assert_eq!(
        outcome.map_err(|error| error.to_string()),
        Ok(expected),
        "the count"
    );
    Ok(())
}

/// The bytes, and behind them nothing.
fn landed(memory: &[u8], expected: &[u8]) -> TestCaseResult {
    let (bytes, rest) = memory.split_at(expected.len());
    same("the bytes read", bytes, expected)?;
    match rest.iter().position(|byte| *byte != UNTOUCHED) {
        Some(at) => Err(TestCaseError::fail(format!(
            "byte {at} behind the count was touched"
        ))),
        None => Ok(()),
    }
}

fn same(what: &str, found: &[u8], expected: &[u8]) -> TestCaseResult {
    match first_difference(found, expected) {
        Some(at) => Err(TestCaseError::fail(format!(
            "{what}: {} bytes, {} expected, first difference at {at}: {:?} instead of {:?}",
            found.len(),
            expected.len(),
            found.get(at),
            expected.get(at)
        ))),
        None => Ok(()),
    }
}

const THREADS: [usize; 4] = [1, 2, 3, 8];
// One byte, odd and even neighbours of block and page, 1 MiB, and the default.
const TASK_SIZES: [usize; 6] = [1, 511, 4096, 4097, 1 << 20, 4 << 20];
const GUARD: usize = 64;
