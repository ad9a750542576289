//! Figures of one object, wherever it is: what `kvik bench remote URL` prints.

use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use kvik::RemoteHandle;
use kvik::stats::names::{HTTP_REQUESTS, HTTP_RETRIES};
use serde::Serialize;

use crate::data::{self, Data};
use crate::figures::{self, Turn, Unit};
use crate::folder::{self, Folder, memory_bound};
use crate::memory::Pages;
use crate::options::{Options, Progress};
use crate::pattern;
use crate::race::{Moved, go_on, timed};
use crate::remote::ours::{Ours, Way};
use crate::remote::reader::Reader;
use crate::table::Table;
use crate::trouble::{Doing, Outcome, Trouble};

/// How much of an object is read, and how often.
///
/// # Example: a short look
/// ```
/// let short = kvik_bench::ReadingOptions { size: 64 << 20, rounds: 1, ..Default::default() };
/// assert!(short.time < std::time::Duration::from_secs(60));
/// ```
#[derive(Clone, Debug)]
pub struct ReadingOptions {
    /// The first bytes of the object, at most, that are read. Less is read where memory is small.
    pub size: u64,
    /// How often everything is done; the figures are medians over these.
    pub rounds: usize,
    /// How long small ranges are read in a round, each way.
    pub time: Duration,
}

impl Default for ReadingOptions {
    fn default() -> Self {
        Self {
            size: 1 << 30,
            rounds: 3,
            time: Duration::from_secs(1),
        }
    }
}

/// What reading an object was like. Its `Display` form is a table for people, in which GB is 1e9 bytes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Reading {
    /// The URL, without secrets.
    pub url: String,
    /// By which protocol it was read.
    pub kind: String,
    /// Its length in bytes.
    pub len: u64,
    /// The figures, in the order in which they were measured.
    pub figures: Vec<ReadingFigure>,
    /// What a reader should know: what was made smaller, and why.
    pub notes: Vec<String>,
}

/// One figure of a [`Reading`].
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ReadingFigure {
    /// A stable name without spaces: `whole`, `4k-1` or `4k-32`.
    pub name: String,
    /// What was done, in words.
    pub title: String,
    /// The median rate.
    pub value: f64,
    /// Its unit: `GB/s` (1e9 bytes a second) or `ops/s` (ranges a second).
    pub unit: String,
    /// The least and the greatest rate.
    pub spread: (f64, f64),
    /// CPU seconds of this process for 1e9 bytes.
    pub cpu_s_per_gb: f64,
    /// Microseconds that a range took, where they are read one after the other: the median, and what 99 of 100 took at most.
    pub latency_us: Option<(f64, f64)>,
    /// Requests of all rounds.
    pub requests: u64,
    /// How many of them were made again.
    pub retries: u64,
}

/// Reads all of `object` with one call, then ranges of 4 KiB one after the other, then with 32 of them under way, at kvik's
/// settings. The last 256 ranges of each way and round, which are in memory still, are compared with what came at once.
///
/// # Errors
/// `Cancelled` once `stop` is raised; `Misuse` without rounds, and for an object that is too short to measure; those of
/// reading it; `Internal` if the bytes differ.
///
/// # Example: an object of a server that is up
/// ```no_run
/// use std::sync::atomic::AtomicBool;
///
/// let object = kvik::RemoteHandle::open("http://127.0.0.1:8080/data.bin")?;
/// let options = kvik_bench::ReadingOptions::default();
/// println!("{}", kvik_bench::remote_reading(&object, &options, &AtomicBool::new(false))?);
/// # Ok::<(), kvik::Error>(())
/// ```
pub fn remote_reading(
    object: &RemoteHandle,
    options: &ReadingOptions,
    stop: &AtomicBool,
) -> kvik::Result<Reading> {
    Ok(read(object, options, stop)?)
}

/// Makes a file for a server to serve, hands it to `work`, and removes it. `dir` and `size` of the options are heeded, and
/// `size` may become less, as for [`default_suite`](crate::default_suite).
///
/// # Errors
/// Those of `work`; `Cancelled` once `stop` is raised; `StorageFull` where there is no room; the kind of the operating
/// system's error if the file cannot be made.
///
/// # Example: its length
/// ```
/// use std::sync::atomic::AtomicBool;
///
/// let options = kvik_bench::Options { size: 4 << 20, ..Default::default() };
/// let stop = AtomicBool::new(false);
/// let len = |file: &std::path::Path| kvik::FileHandle::open(file)?.len();
/// assert_eq!(kvik_bench::with_served_file(&options, &mut |_| {}, &stop, len)?, 4 << 20);
/// # Ok::<(), kvik::Error>(())
/// ```
pub fn with_served_file<T, E: From<kvik::Error>>(
    options: &Options,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &AtomicBool,
    work: impl FnOnce(&Path) -> Result<T, E>,
) -> Result<T, E> {
    let mut made = || {
        let folder = Folder::make(options)?;
        let (size, _) = folder::affordable(options, folder.parent())?;
        let data = Data::make(&folder, size, DATA_TIME, progress, stop)?;
        Ok::<_, Trouble>((folder, data))
    };
    let (folder, data) = made().map_err(kvik::Error::from)?;
    let done = work(&data.path)?;
    folder.remove().map_err(kvik::Error::from)?;
    Ok(done)
}

fn read(object: &RemoteHandle, options: &ReadingOptions, stop: &AtomicBool) -> Outcome<Reading> {
    if options.rounds == 0 {
        let why = "the number of rounds must be positive";
        return Err(Trouble::Misuse(why.into()));
    }
    if object.len() < LEAST {
        return Err(Trouble::Misuse(format!(
            "{} has {} bytes; of less than {LEAST} too little is read to be measured",
            object.url(),
            object.len()
        )));
    }
    let wanted = options.size.clamp(LEAST, object.len());
    let size = memory_bound(wanted).min(wanted);
    let mut notes = Vec::new();
    if size < object.len() {
        notes.push(format!(
            "only the first {size} of {} bytes were read",
            object.len()
        ));
    }
    let place = Path::new(object.url());
    let mut whole = Pages::new(size as usize).doing("get memory to read", place)?;
    let mut pieces = Pages::new(LIST * PIECE).doing("get memory to read", place)?;
    let mut sums = [Sum::default(), Sum::default(), Sum::default()];
    for round in 0..options.rounds {
        go_on(stop)?;
        let target = whole.view_mut(0, size as usize);
        let mut at_once = Ours::new(object.clone(), Way::OneByOne);
        sums[0].add(&mut |_| {
            at_once.read(target, &[0], size as usize)?;
            Ok(Moved::here(size, 1))
        })?;
        let reference = &*whole.view_mut(0, size as usize);
        for (sum, way) in sums[1..]
            .iter_mut()
            .zip([Way::OneByOne, Way::Submitted(32)])
        {
            let one_by_one = way == Way::OneByOne;
            let mut list = List {
                reader: Ours::new(object.clone(), way),
                target: pieces.view_mut(0, LIST * PIECE),
                reference,
                salt: round as u64,
            };
            sum.add(&mut |latencies| {
                list.read_for(options.time, one_by_one.then_some(latencies), stop)
            })?;
            list.compare(object.url())?;
        }
    }
    let [whole, alone, together] = sums;
    Ok(Reading {
        url: object.url().to_owned(),
        kind: object.kind().to_string(),
        len: object.len(),
        figures: vec![
            whole.figure("whole", "one read of all of it", Unit::Gigabytes)?,
            alone.figure("4k-1", "4 KiB, one after the other", Unit::Operations)?,
            together.figure("4k-32", "4 KiB, 32 under way", Unit::Operations)?,
        ],
        notes,
    })
}

/// What the rounds of one figure have brought.
#[derive(Default)]
struct Sum {
    turns: Vec<Turn>,
    latencies: Vec<f64>,
    requests: u64,
    retries: u64,
}

impl Sum {
    fn add(&mut self, work: &mut dyn FnMut(&mut Vec<f64>) -> Outcome<Moved>) -> Outcome<()> {
        let (requests, retries) = (HTTP_REQUESTS.get(), HTTP_RETRIES.get());
        let turn = timed(|| work(&mut self.latencies))?;
        self.turns.push(turn);
        self.requests += HTTP_REQUESTS.get() - requests;
        self.retries += HTTP_RETRIES.get() - retries;
        Ok(())
    }

    fn figure(mut self, name: &str, title: &str, unit: Unit) -> Outcome<ReadingFigure> {
        let not_finite = || Trouble::Unfit("the figures are not finite".into());
        let (value, cpu_s_per_gb) = figures::medians(&self.turns, unit).ok_or_else(not_finite)?;
        let rates: Vec<_> = self.turns.iter().map(|turn| turn.rate(unit)).collect();
        self.latencies.sort_by(f64::total_cmp);
        let of_100 = |count: usize| {
            let last = self.latencies.len().checked_sub(1)?;
            self.latencies.get(last * count / 100).copied()
        };
        Ok(ReadingFigure {
            name: name.to_owned(),
            title: title.to_owned(),
            value,
            unit: unit.to_string(),
            spread: figures::spread(&rates).ok_or_else(not_finite)?,
            cpu_s_per_gb,
            latency_us: of_100(50).zip(of_100(99)),
            requests: self.requests,
            retries: self.retries,
        })
    }
}

/// Lists of ranges at random places, one after the other into the same memory.
struct List<'a> {
    reader: Ours,
    target: &'a mut [u8],
    /// The first bytes of the object, as they came at once.
    reference: &'a [u8],
    salt: u64,
}

impl List<'_> {
    /// Where the ranges begin: not in what a handle keeps of an object's begin, of which nothing would be asked for.
    fn offsets(&self) -> Vec<u64> {
        let places = (self.reference.len() as u64 - KEPT) / PIECE as u64;
        let place = |index| KEPT + pattern::word(self.salt, index) % places * PIECE as u64;
        (0..LIST as u64).map(place).collect()
    }

    /// Reads until the time is over, and one list at least; how long each range took goes into `latencies`.
    fn read_for(
        &mut self,
        time: Duration,
        mut latencies: Option<&mut Vec<f64>>,
        stop: &AtomicBool,
    ) -> Outcome<Moved> {
        let began = Instant::now();
        let mut count = 0;
        loop {
            go_on(stop)?;
            self.salt = pattern::word(self.salt, count);
            let offsets = self.offsets();
            match &mut latencies {
                None => self.reader.read(self.target, &offsets, PIECE)?,
                Some(latencies) => {
                    let pieces = offsets.iter().zip(self.target.chunks_mut(PIECE));
                    for (&offset, piece) in pieces {
                        let asked = Instant::now();
                        self.reader.read(piece, &[offset], PIECE)?;
                        latencies.push(asked.elapsed().as_secs_f64() * 1e6);
                    }
                }
            }
            count += LIST as u64;
            if began.elapsed() >= time {
                return Ok(Moved::here(count * PIECE as u64, count));
            }
        }
    }

    /// The last list with what came at once.
    fn compare(&self, url: &str) -> Outcome<()> {
        for (offset, piece) in self.offsets().into_iter().zip(self.target.chunks(PIECE)) {
            let wanted = &self.reference[offset as usize..][..PIECE];
            if let Some(at) = data::first_unequal(piece, wanted) {
                return Err(Trouble::Mismatch {
                    case: format!("ranges of {url}"),
                    contender: "kvik".into(),
                    position: offset + at as u64,
                });
            }
        }
        Ok(())
    }
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {}, {} bytes", self.url, self.kind, self.len)?;
        let header = [
            "",
            "rate",
            "(min-max)",
            "latency",
            "CPU s/GB",
            "requests",
            "retries",
        ];
        let mut table = Table::new(&header);
        for figure in &self.figures {
            let (low, high) = figure.spread;
            let gigabytes = figure.unit == "GB/s";
            let digits = if gigabytes { 2 } else { 0 };
            let latency = figure.latency_us.map_or_else(String::new, |(half, most)| {
                format!("{half:.0} us, 99 of 100 in {most:.0}")
            });
            table.row([
                figure.title.clone(),
                format!("{:.digits$} {}", figure.value, figure.unit),
                format!("({low:.digits$}-{high:.digits$})"),
                latency,
                format!("{:.2}", figure.cpu_s_per_gb),
                figure.requests.to_string(),
                figure.retries.to_string(),
            ]);
        }
        write!(f, "{table}")?;
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        Ok(())
    }
}

const PIECE: usize = 4 << 10;
/// Ranges between two looks at the clock.
const LIST: usize = 256;
// What a handle keeps from when it was opened.
const KEPT: u64 = 64 << 10;
// Making the file is part of what somebody waits for.
const DATA_TIME: Duration = Duration::from_secs(8);
// Some ranges lie behind what is kept.
const LEAST: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::test_server::serve;

    fn turn(seconds: f64) -> Turn {
        Turn {
            seconds,
            cpu_seconds: 0.5,
            bytes: 1_000_000_000,
            operations: 1000,
        }
    }

    #[test]
    fn a_figure_is_the_median_of_its_rounds_with_spread_and_latencies() {
        let sum = Sum {
            turns: [1.0, 2.0, 4.0].map(turn).to_vec(),
            latencies: (1..=101).rev().map(f64::from).collect(),
            requests: 9,
            retries: 2,
        };
        let figure = sum
            .figure("4k-1", "ranges", Unit::Operations)
            .expect("finite");
        assert_eq!((figure.value, figure.spread), (500.0, (250.0, 1000.0)));
        assert_eq!(figure.latency_us, Some((51.0, 100.0)));
        assert_eq!((figure.requests, figure.retries), (9, 2));
        assert_eq!(figure.cpu_s_per_gb, 0.5);
        let reading = Reading {
            url: "http://h/o".into(),
            kind: "http".into(),
            len: 7,
            figures: vec![figure],
            notes: vec!["a note".into()],
        };
        let text = reading.to_string();
        for part in [
            "http://h/o, http, 7 bytes",
            "500 ops/s",
            "(250-1000)",
            "51 us, 99 of 100 in 100",
            "note: a note",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn no_rounds_are_no_figure() {
        assert!(Sum::default().figure("", "", Unit::Gigabytes).is_err());
    }
    fn reading(object: &RemoteHandle) -> kvik::Result<Reading> {
        let options = ReadingOptions {
            rounds: 2,
            time: Duration::ZERO,
            ..ReadingOptions::default()
        };
        remote_reading(object, &options, &AtomicBool::new(false))
    }

    fn object(bytes: usize, wrong: Option<u64>) -> RemoteHandle {
        let mut content = vec![0; bytes];
        pattern::fill(&mut content, 7, 0);
        let address = serve(content, wrong);
        RemoteHandle::open(&format!("http://{address}/o")).expect("opened")
    }

    #[test]
    fn an_object_has_three_figures_and_every_small_range_is_a_request() {
        let reading = reading(&object(3 << 20, None)).expect("measured");
        let names: Vec<_> = reading.figures.iter().map(|each| &*each.name).collect();
        assert_eq!(names, ["whole", "4k-1", "4k-32"]);
        assert_eq!((reading.len, reading.notes.len()), (3 << 20, 0));
        assert_eq!(reading.kind, "HTTP");
        for figure in &reading.figures {
            assert!(
                figure.value > 0.0 && figure.spread.0 <= figure.value,
                "{figure:?}"
            );
        }
        for figure in &reading.figures[1..] {
            // Other tests of this process may ask, too.
            assert!(figure.requests >= 2 * LIST as u64, "{figure:?}");
        }
        let alone = reading.figures[1].latency_us;
        assert!(alone.is_some_and(|(half, most)| half <= most));
    }

    #[test]
    fn a_range_that_differs_from_what_came_at_once_ends_it() {
        // In a large read no request begins here.
        let error = reading(&object(1 << 20, Some(KEPT + 4096))).expect_err("differs");
        assert_eq!(error.kind(), kvik::ErrorKind::Internal, "{error}");
        assert!(
            error.to_string().contains(&(KEPT + 4096).to_string()),
            "{error}"
        );
    }

    #[test]
    fn what_is_kept_of_a_short_object_is_not_measured() {
        let error = reading(&object(100_000, None)).expect_err("too short");
        assert_eq!(error.kind(), kvik::ErrorKind::Misuse, "{error}");
    }
}
