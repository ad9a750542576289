//! A Python process that holds another program: started once, asked in lines of JSON, measured by its own clock.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::race::{Elsewhere, Moved};
use crate::rivals::Peers;
use crate::trouble::{Doing, Outcome, Trouble};

pub(crate) struct Worker {
    /// Whom it holds.
    who: &'static str,
    child: Child,
    /// `None` once it was told to end.
    asks: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    about: String,
}

impl Worker {
    /// Starts one that holds KvikIO for files, with memory for `len` bytes: of the host at any place within a page, or of
    /// this device.
    pub(super) fn start(
        python: &Path,
        peers: &Peers,
        folder: &Path,
        len: u64,
        device: Option<i32>,
    ) -> Outcome<Self> {
        let hello = json!({"do": "hello", "len": len, "device": device});
        Self::begin(("KvikIO", FILES), python, peers, folder, &hello)
    }

    /// Starts one that holds `who` for remote objects; `hello` says which class of the script that is, and what it needs.
    pub(crate) fn start_remote(
        who: &'static str,
        python: &Path,
        peers: &Peers,
        folder: &Path,
        hello: &Value,
    ) -> Outcome<Self> {
        Self::begin((who, REMOTE), python, peers, folder, hello)
    }

    fn begin(
        (who, script): (&'static str, &str),
        python: &Path,
        peers: &Peers,
        folder: &Path,
        hello: &Value,
    ) -> Outcome<Self> {
        let text = [COMMON, script, END].join("\n\n");
        let script = folder.join(format!("{}_worker.py", who.to_lowercase()));
        std::fs::write(&script, text).doing("write", &script)?;
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
            return Err(ended(who));
        };
        let mut worker = Self {
            who,
            child,
            asks: Some(asks),
            answers: BufReader::new(answers),
            about: String::new(),
        };
        let about = worker.ask(hello)?;
        worker.about = about["about"].as_str().unwrap_or_default().to_owned();
        Ok(worker)
    }

    /// Versions, defaults and memory, in a sentence.
    pub(crate) fn about(&self) -> &str {
        &self.about
    }

    /// One line out, one line back.
    pub(crate) fn ask(&mut self, what: &Value) -> Outcome<Value> {
        let who = self.who;
        let asks = self.asks.as_mut().ok_or_else(|| ended(who))?;
        writeln!(asks, "{what}")
            .and_then(|()| asks.flush())
            .map_err(|_| ended(who))?;
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(1..) => answer(who, &line),
            _ => Err(ended(who)),
        }
    }

    /// Something that it times itself.
    pub(crate) fn timed(&mut self, what: &Value) -> Outcome<Moved> {
        let answer = self.ask(what)?;
        let who = self.who;
        moved(&answer).ok_or_else(|| Trouble::Unfit(format!("the worker of {who}: {answer}")))
    }

    /// The position that an answer calls wrong.
    pub(crate) fn wrong(&mut self, what: &Value) -> Outcome<Option<u64>> {
        Ok(self.ask(what)?["wrong"].as_u64())
    }

    pub(crate) fn cpu_seconds(&mut self) -> Outcome<f64> {
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
fn answer(who: &str, line: &str) -> Outcome<Value> {
    let value: Value = serde_json::from_str(line).map_err(|_| {
        let said = line.trim_end();
        Trouble::Unfit(format!("the worker of {who} said {said:?}"))
    })?;
    match value["error"].as_str() {
        Some(error) => Err(Trouble::Unfit(format!("the worker of {who}: {error}"))),
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

fn ended(who: &str) -> Trouble {
    Trouble::Unfit(format!(
        "the worker of {who} has ended; what it said is above"
    ))
}

/// What a worker is put together of: what all of them need, what this one does, and its loop.
const COMMON: &str = include_str!("../../compare/worker.py");
const FILES: &str = include_str!("../../compare/files_worker.py");
const REMOTE: &str = include_str!("../../compare/remote_worker.py");
const END: &str = "main(hello, Job)\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_objects_and_errors_are_reasons() {
        let value = answer("KvikIO", "{\"wrong\": null}\n").expect("an object");
        assert_eq!(value["wrong"].as_u64(), None);
        for line in ["{\"error\": \"no libcuda\"}", "Traceback", ""] {
            let trouble = answer("KvikIO", line).expect_err("no answer");
            assert!(trouble.ends_only_the_case(), "{trouble}");
        }
        let said = answer("KvikIO", "{\"error\": \"no libcuda\"}").expect_err("an error");
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
