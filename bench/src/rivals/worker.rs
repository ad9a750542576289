//! The Python process that holds KvikIO: started once, asked in lines of JSON, measured by its own clock.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::race::{Elsewhere, Moved};
use crate::rivals::Peers;
use crate::trouble::{Doing, Outcome, Trouble};

pub(crate) struct Worker {
    child: Child,
    /// `None` once it was told to end.
    asks: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    about: String,
}

impl Worker {
    /// Starts it with memory for `len` bytes: of the host at any place within a page, or of this device.
    pub(super) fn start(
        python: &Path,
        peers: &Peers,
        folder: &Path,
        len: u64,
        device: Option<i32>,
    ) -> Outcome<Self> {
        let script = folder.join("kvikio_worker.py");
        std::fs::write(&script, SCRIPT).doing("write", &script)?;
        let mut command = Command::new(python);
        // Without -B it would leave a folder of compiled files beside the script; -I keeps it off what the user's Python has.
        command.arg("-I").arg("-B").arg(&script);
        // In its own words, since -I also keeps out what the environment would name.
        command.args(&peers.packages);
        if let Some(libraries) = &peers.libraries {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .doing("start", python)?;
        let (Some(asks), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(ended());
        };
        let mut worker = Self {
            child,
            asks: Some(asks),
            answers: BufReader::new(answers),
            about: String::new(),
        };
        let about = worker.ask(&json!({"do": "hello", "len": len, "device": device}))?;
        worker.about = about["about"].as_str().unwrap_or_default().to_owned();
        Ok(worker)
    }

    /// Versions, defaults and memory, in a sentence.
    pub(super) fn about(&self) -> &str {
        &self.about
    }

    /// One line out, one line back.
    pub(super) fn ask(&mut self, what: &Value) -> Outcome<Value> {
        let asks = self.asks.as_mut().ok_or_else(ended)?;
        writeln!(asks, "{what}")
            .and_then(|()| asks.flush())
            .map_err(|_| ended())?;
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(1..) => answer(&line),
            _ => Err(ended()),
        }
    }

    /// Something that it times itself.
    pub(super) fn timed(&mut self, what: &Value) -> Outcome<Moved> {
        let answer = self.ask(what)?;
        moved(&answer).ok_or_else(|| Trouble::Unfit(format!("KvikIO's worker: {answer}")))
    }

    /// The position that an answer calls wrong.
    pub(super) fn wrong(&mut self, what: &Value) -> Outcome<Option<u64>> {
        Ok(self.ask(what)?["wrong"].as_u64())
    }

    pub(super) fn cpu_seconds(&mut self) -> Outcome<f64> {
        let answer = self.ask(&json!({"do": "cpu"}))?;
        Ok(answer["cpu_seconds"].as_f64().unwrap_or(0.0))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The end of its input is the end of its loop. A worker that hangs in a call has no bytes that anybody waits for.
        drop(self.asks.take());
        for _ in 0..50 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The object in a line; one with an `error` is the reason why something could not be done.
fn answer(line: &str) -> Outcome<Value> {
    let value: Value = serde_json::from_str(line)
        .map_err(|_| Trouble::Unfit(format!("KvikIO's worker said {:?}", line.trim_end())))?;
    match value["error"].as_str() {
        Some(error) => Err(Trouble::Unfit(format!("KvikIO's worker: {error}"))),
        None => Ok(value),
    }
}

fn moved(answer: &Value) -> Option<Moved> {
    Some(Moved {
        bytes: answer["bytes"].as_u64()?,
        operations: answer["operations"].as_u64()?,
        elsewhere: Some(Elsewhere {
            seconds: answer["seconds"].as_f64()?,
            cpu_seconds: answer["cpu_seconds"].as_f64()?,
        }),
    })
}

fn ended() -> Trouble {
    Trouble::Unfit("KvikIO's worker has ended; what it said is above".to_owned())
}

const SCRIPT: &str = include_str!("../../compare/kvikio_worker.py");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_objects_and_errors_are_reasons() {
        let value = answer("{\"wrong\": null}\n").expect("an object");
        assert_eq!(value["wrong"].as_u64(), None);
        for line in ["{\"error\": \"no libcuda\"}", "Traceback", ""] {
            let trouble = answer(line).expect_err("no answer");
            assert!(trouble.ends_only_the_case(), "{trouble}");
        }
        let said = answer("{\"error\": \"no libcuda\"}").expect_err("an error");
        assert!(said.to_string().contains("no libcuda"));
    }

    #[test]
    fn a_turn_has_all_four_figures() {
        let whole = json!({"bytes": 5, "operations": 1, "seconds": 0.5, "cpu_seconds": 0.25});
        let moved = moved(&whole).expect("whole");
        assert_eq!((moved.bytes, moved.operations), (5, 1));
        let elsewhere = Elsewhere {
            seconds: 0.5,
            cpu_seconds: 0.25,
        };
        assert_eq!(moved.elsewhere, Some(elsewhere));
        assert!(super::moved(&json!({"bytes": 5, "operations": 1, "seconds": 0.5})).is_none());
    }

    #[test]
    fn a_python_without_kvikio_is_a_reason() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let peers = Peers::default();
        let start = |python| Worker::start(Path::new(python), &peers, folder.path(), 4096, None);
        assert!(start("no-such-python").is_err());
        // A program that ends at once, as a Python does that has no kvikio.
        assert!(
            start("false")
                .err()
                .is_some_and(|why| why.ends_only_the_case())
        );
    }
}
