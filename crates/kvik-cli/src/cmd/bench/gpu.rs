//! `kvik bench gpu`: its flags, and where its report goes.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kvik::config::ByteSize;
use kvik_bench::{Options, Peers};
use serde_json::Value;

use crate::failure::{Failure, Result};

/// Measure files to the memory of a GPU and back
///
/// Large reads out of the page cache by 1, 4, 8 and 16 threads and by kvik's defaults, out of a file
/// in /dev/shm and from the disk, reads in the order of a stream, alone and with kernels behind, a
/// large write to /dev/shm, and small random reads in lists and one by one. The limit is a plain loop:
/// threads with two slabs of page-locked memory each, one of which is read into while the other is
/// copied. All bytes are fetched from the GPU and compared.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = AFTER)]
pub(super) struct Flags {
    /// The number of the GPU, among those that the driver shows to this process
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..))]
    device: i32,
    /// Let KvikIO take part, which this Python can import, with cupy and numpy
    #[arg(long, value_name = "PROGRAM")]
    kvikio: Option<PathBuf>,
    /// A folder with packages for that Python beside its own
    #[arg(long, value_name = "DIR", requires = "kvikio")]
    kvikio_packages: Option<PathBuf>,
    /// Make the files in this folder, to measure the storage under it; one is always in /dev/shm
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Length of the data, at most; less is used on small machines, and the report says so
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    size: ByteSize,
    /// How often each contender of a case runs
    #[arg(long, value_name = "N", default_value_t = 7)]
    rounds: usize,
    /// Seconds that all cases but the large reads out of memory may take, about
    #[arg(long, value_name = "SECONDS", default_value = "90", value_parser = super::seconds)]
    budget: Duration,
    /// Run only cases whose name contains this; may be given again
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Write the report to this file as well, as --json would print it
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

impl Flags {
    pub(super) fn options(&self) -> Result<Options> {
        Ok(Options {
            dir: self.dir.clone(),
            size: self.size.bytes(),
            rounds: self.rounds,
            threads: super::said_threads()?,
            device: self.device,
            cases: self.cases.clone(),
            budget: self.budget,
            ..Options::default()
        })
    }

    pub(super) fn peers(&self) -> Option<Peers> {
        let python = self.kvikio.clone()?;
        Some(Peers {
            python: Some(python),
            packages: self.kvikio_packages.clone(),
            ..Peers::default()
        })
    }

    /// The file that the report is written to.
    pub(super) fn saved_to(&self) -> Option<&PathBuf> {
        self.save.as_ref()
    }

    pub(super) fn save(&self, report: &Value) -> Result<()> {
        let Some(file) = &self.save else {
            return Ok(());
        };
        let written = std::fs::write(file, format!("{report:#}\n"));
        written.map_err(|error| Failure::io("write", file, &error))
    }
}

const AFTER: &str = "\
Output:
  As `kvik bench`. Contenders named `copy alone` or `pwrite alone` go only a part of the way.

Exit codes:
  0 measured, 2 no such case, 3 a folder does not exist, 6 no room for the data, 7 no GPU or no
  driver, 130 Ctrl-C; `kvik --help` has the whole table.

Examples:
  kvik bench gpu
  kvik bench gpu --threads 8 --case hot --size 1GiB
  kvik bench gpu --kvikio python3 --save gpu.json";
