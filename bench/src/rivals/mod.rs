//! Other programs that are measured in turn with us: KvikIO and obstore, held by Python workers, and fio.

mod fio;
mod kvikio;
mod worker;

pub(crate) use fio::{Fio, FioWay};
pub(crate) use kvikio::{Job, Kvikio, KvikioWay};
pub(crate) use worker::Worker;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use crate::scenes::Rival;
use crate::trouble::Outcome;

/// Where the other programs of a comparison are. `cargo xtask bench file --against-kvikio` installs them.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    /// A Python interpreter that can import `kvikio` and `numpy`, and for the suite of a device `cupy`. `None`: KvikIO does
    /// not take part.
    pub python: Option<PathBuf>,
    /// A folder with packages for that Python beside its own.
    pub packages: Option<PathBuf>,
    /// A folder with the `libcuda.so.1` that KvikIO is to load, where the machine has none.
    pub libraries: Option<PathBuf>,
    /// The disk tester fio. `None`: it does not take part.
    pub fio: Option<PathBuf>,
    /// A Python interpreter that can import `obstore` and `numpy`. `None`: obstore does not take part.
    pub obstore: Option<PathBuf>,
    /// The web server nginx, from which the suite of remote objects reads.
    pub nginx: Option<PathBuf>,
    /// The URL of a file of HDFS by WebHDFS, with its `user.name`, which the suite of remote objects may make and removes.
    /// `None`: its cases are not run.
    pub webhdfs: Option<String>,
}

/// Who takes part in a case beside us and the loops.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Against {
    Kvikio(KvikioWay),
    Fio(FioWay),
}

/// The other programs, as far as they are there.
pub(crate) struct Opponents {
    kvikio: Option<RefCell<Worker>>,
    fio: Option<PathBuf>,
    pub(crate) notes: Vec<String>,
}

impl Opponents {
    /// Starts the worker, which gets memory for `len` bytes, and asks everybody for a version. `folder`: of the run.
    pub(crate) fn gather(
        peers: &Peers,
        folder: &Path,
        len: u64,
        device: Option<i32>,
    ) -> Outcome<Self> {
        let mut notes = Vec::new();
        let kvikio = match &peers.python {
            None => {
                notes.push("KvikIO did not take part: no Python was named".to_owned());
                None
            }
            Some(python) => {
                let worker = Worker::start(python, peers, folder, len, device)?;
                notes.push(worker.about().to_owned());
                Some(RefCell::new(worker))
            }
        };
        match &peers.fio {
            None if device.is_some() => {}
            None => notes.push("fio did not take part: none was named".to_owned()),
            Some(program) => notes.push(fio::version(program)?),
        }
        Ok(Self {
            kvikio,
            fio: peers.fio.clone(),
            notes,
        })
    }

    /// The rivals of one case, each of which has shown that it can run here; of the others, the reason why they cannot.
    pub(crate) fn rivals(
        &self,
        against: &[Against],
        job: &Job,
        path: &Path,
        seed: u64,
    ) -> (Vec<Box<dyn Rival + '_>>, Vec<String>) {
        let (mut rivals, mut notes) = (Vec::new(), Vec::new());
        for each in against {
            let rival: Box<dyn Rival + '_> = match (each, &self.kvikio, &self.fio) {
                (Against::Kvikio(way), Some(worker), _) => {
                    Box::new(Kvikio::new(worker, way.clone(), job.clone(), path, seed))
                }
                (Against::Fio(way), _, Some(program)) => {
                    Box::new(Fio::new(program, way.clone(), job, path))
                }
                _ => continue,
            };
            match self.trial(rival) {
                Ok(rival) => rivals.push(rival),
                Err(why) => notes.push(why),
            }
        }
        (rivals, notes)
    }

    fn trial<'a>(&self, mut rival: Box<dyn Rival + 'a>) -> Result<Box<dyn Rival + 'a>, String> {
        let tried = rival.prepare(TRIAL, 0).and_then(|()| rival.turn(TRIAL));
        match tried {
            Ok(_) => Ok(rival),
            Err(why) => Err(format!(
                "{} did not take part: {why}",
                rival.contender().name
            )),
        }
    }

    /// CPU seconds that the worker has used so far.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        self.kvikio
            .as_ref()
            .and_then(|worker| worker.borrow_mut().cpu_seconds().ok())
            .unwrap_or(0.0)
    }
}

// Bytes, or reads where a case counts those: a whole block of anybody, and soon done.
const TRIAL: u64 = 10_000;
