//! KvikIO and obstore as guests: each in a Python process of its own, with its own memory and its own clock.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::contender::{Contender, Role};
use crate::loops::by_threads;
use crate::race::Moved;
use crate::remote::cast::{RemoteKind, What};
use crate::rivals::{Peers, Worker};
use crate::scenes::Rival;
use crate::trouble::{Outcome, Trouble};

/// How a guest reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GuestWay {
    /// KvikIO with nothing said.
    KvikioDefaults,
    /// KvikIO by so many threads of its pool, each with a request.
    KvikioThreads(usize),
    /// KvikIO by its reactor, which polls many requests on one thread.
    KvikioReactor,
    /// obstore with so many ranges under way.
    Obstore(usize),
}

impl GuestWay {
    fn name(&self) -> String {
        match self {
            Self::KvikioDefaults => "KvikIO, its defaults".into(),
            Self::KvikioThreads(threads) => format!("KvikIO, {}", by_threads(*threads)),
            Self::KvikioReactor => "KvikIO, MULTI_POLL".into(),
            Self::Obstore(1) => "obstore, 1 range".into(),
            Self::Obstore(ranges) => format!("obstore, {ranges} ranges"),
        }
    }

    fn role(&self) -> Role {
        match self {
            Self::KvikioDefaults | Self::KvikioThreads(_) | Self::KvikioReactor => Role::Kvikio,
            Self::Obstore(_) => Role::Obstore,
        }
    }
}

/// The guests, as far as they are there.
pub(super) struct Guests {
    kvikio: Option<RefCell<Worker>>,
    obstore: Option<RefCell<Worker>>,
    pub(super) notes: Vec<String>,
}

impl Guests {
    /// Starts them, with memory for `len` bytes each. They trust `authority`.
    pub(super) fn gather(
        peers: &Peers,
        folder: &Path,
        len: u64,
        authority: &Path,
    ) -> Outcome<Self> {
        let mut notes = Vec::new();
        let mut start = |who: &'static str, python: &Option<PathBuf>| {
            let Some(python) = python else {
                notes.push(format!("{who} did not take part: no Python was named"));
                return Ok::<_, Trouble>(None);
            };
            let ca = authority.display().to_string();
            let hello = json!({"do": "hello", "who": who, "len": len, "ca": ca});
            let worker = Worker::start_remote(who, python, peers, folder, &hello)?;
            notes.push(worker.about().to_owned());
            Ok(Some(RefCell::new(worker)))
        };
        let kvikio = start("KvikIO", &peers.python)?;
        let obstore = start("obstore", &peers.obstore)?;
        Ok(Self {
            kvikio,
            obstore,
            notes,
        })
    }

    /// The guests of one case, each of which has shown that it can read here; of the others, the reason why they cannot.
    pub(super) fn rivals(
        &self,
        kind: &RemoteKind,
        object: &Value,
        (len, seed): (u64, u64),
    ) -> (Vec<Box<dyn Rival + '_>>, Vec<String>) {
        let (mut rivals, mut notes): (Vec<Box<dyn Rival + '_>>, _) = (Vec::new(), Vec::new());
        for way in &kind.guests {
            let worker = match way.role() {
                Role::Obstore => &self.obstore,
                _ => &self.kvikio,
            };
            let Some(worker) = worker else { continue };
            let mut guest = Guest {
                worker,
                way: way.clone(),
                what: kind.what,
                object: object.clone(),
                len,
                seed,
                salt: 0,
            };
            let tried = guest.prepare(TRIAL, 0).and_then(|()| guest.turn(TRIAL));
            match tried {
                Ok(_) => rivals.push(Box::new(guest)),
                Err(why) => notes.push(format!("{} did not take part: {why}", way.name())),
            }
        }
        (rivals, notes)
    }

    /// CPU seconds that the workers have used so far.
    pub(super) fn cpu_seconds(&self) -> f64 {
        let workers = self.kvikio.iter().chain(&self.obstore);
        workers
            .filter_map(|worker| worker.borrow_mut().cpu_seconds().ok())
            .sum()
    }
}

struct Guest<'a> {
    worker: &'a RefCell<Worker>,
    way: GuestWay,
    what: What,
    object: Value,
    len: u64,
    /// The pattern of the object.
    seed: u64,
    salt: u64,
}

impl Guest<'_> {
    /// The question, with all that the worker needs to know about this case.
    fn question(&self, what: &str, amount: u64) -> Value {
        let (kind, (size, list), page_offset, piece_wise) = match self.what {
            What::Whole { page_offset } => ("whole", (0, 0), page_offset, None),
            What::Pieces {
                size,
                under_way,
                list,
            } => ("pieces", (size, list), 0, Some(under_way)),
        };
        let (threads, reactor, ranges) = match self.way {
            GuestWay::KvikioDefaults => (None, false, None),
            GuestWay::KvikioThreads(threads) => (Some(threads), false, None),
            GuestWay::KvikioReactor => (None, true, None),
            GuestWay::Obstore(ranges) => (None, false, Some(ranges)),
        };
        let way = json!({
            "threads": threads,
            "reactor": reactor,
            "under_way": ranges.or(piece_wise).unwrap_or(1),
        });
        json!({
            "do": what,
            "kind": kind,
            "at": self.object,
            "way": way,
            "amount": amount,
            "page_offset": page_offset,
            "size": size,
            "list": list,
            "len": self.len,
            "seed": self.seed,
            "salt": self.salt,
        })
    }
}

impl Rival for Guest<'_> {
    fn contender(&self) -> Contender {
        Contender::new(self.way.role(), self.way.name())
    }

    fn prepare(&mut self, amount: u64, salt: u64) -> Outcome<()> {
        self.salt = salt;
        let question = self.question("prepare", amount);
        self.worker.borrow_mut().ask(&question).map(|_| ())
    }

    fn turn(&mut self, amount: u64) -> Outcome<Moved> {
        let question = self.question("turn", amount);
        self.worker.borrow_mut().timed(&question)
    }

    fn check(&mut self, amount: u64, _: u64) -> Outcome<Option<u64>> {
        let question = self.question("check", amount);
        self.worker.borrow_mut().wrong(&question)
    }

    fn prove(&mut self, amount: u64) -> Outcome<Option<u64>> {
        let question = self.question("prove", amount);
        self.worker.borrow_mut().wrong(&question)
    }
}

// Bytes, or ranges where a case counts those: soon done.
const TRIAL: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_how_a_guest_reads() {
        let named = [
            (GuestWay::KvikioDefaults, "KvikIO, its defaults"),
            (GuestWay::KvikioThreads(8), "KvikIO, 8 threads"),
            (GuestWay::KvikioReactor, "KvikIO, MULTI_POLL"),
            (GuestWay::Obstore(1), "obstore, 1 range"),
            (GuestWay::Obstore(32), "obstore, 32 ranges"),
        ];
        for (way, name) in named {
            assert_eq!(way.name(), name);
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_a_note_and_no_guest() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let nobody = Peers::default();
        let guests = Guests::gather(&nobody, folder.path(), 4096, Path::new("ca.pem"));
        let guests = guests.expect("nobody is started");
        assert_eq!(guests.notes.len(), 2);
        assert!(guests.notes[1].starts_with("obstore did not take part"));
        let kind = RemoteKind {
            door: crate::remote::door::Door::Plain,
            what: What::Whole { page_offset: 0 },
            guests: vec![GuestWay::KvikioDefaults, GuestWay::Obstore(8)],
        };
        assert!(guests.rivals(&kind, &json!({}), (4096, 1)).0.is_empty());
        assert_eq!(guests.cpu_seconds(), 0.0);
    }
}
