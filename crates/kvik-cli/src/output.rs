//! Output: the one place where reports, statistics and failures are printed.

use std::io::{self, Write};

use anstream::AutoStream;
use clap::ColorChoice;
use kvik::stats::Summary;
use kvik::stats::names::KVIKIO;
use serde_json::{Map, Value, json};

use crate::Exit;
use crate::failure::{Failure, Result};
use crate::flags::{Global, StatsForm};
use crate::style::{BAD, NOTE};

/// What a command has to say once it is done; the same facts twice, for programs and for people.
#[derive(Debug)]
pub(crate) struct Report {
    json: Map<String, Value>,
    text: String,
    /// The text is a remark on work done, for standard error, and not the result itself.
    remark: bool,
    exit: Exit,
}

impl Report {
    /// `json` has to be an object, which is how `json!({...})` comes.
    pub(crate) fn new(json: Value) -> Self {
        let json = match json {
            Value::Object(object) => object,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        Report {
            json,
            text: String::new(),
            remark: false,
            exit: Exit::Ok,
        }
    }

    /// The result for people.
    #[must_use]
    pub(crate) fn text(mut self, text: String) -> Self {
        self.text = text;
        self
    }

    /// A remark for people, on standard error.
    #[must_use]
    pub(crate) fn remark(mut self, text: String) -> Self {
        self.text = text;
        self.remark = true;
        self
    }

    /// Done, with a verdict that is worth an exit code.
    #[must_use]
    pub(crate) fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }
}

/// How this run prints.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    json: bool,
    quiet: bool,
    stats: Option<StatsForm>,
    color: anstream::ColorChoice,
    /// Standard output carries bytes of a file, so that all else, JSON too, goes to standard error.
    aside: bool,
}

impl Output {
    pub(crate) fn new(flags: &Global) -> Self {
        let color = match flags.color {
            ColorChoice::Auto => anstream::ColorChoice::Auto,
            ColorChoice::Always => anstream::ColorChoice::Always,
            ColorChoice::Never => anstream::ColorChoice::Never,
        };
        Output {
            json: flags.json,
            quiet: flags.quiet,
            stats: flags.stats,
            color,
            aside: false,
        }
    }

    /// Keeps standard output free for the bytes of a file.
    #[must_use]
    pub(crate) fn aside(mut self, yes: bool) -> Self {
        self.aside = yes;
        self
    }

    /// Neither progress nor remarks are wanted.
    pub(crate) fn quiet(&self) -> bool {
        self.quiet
    }

    /// Prints what a command reports and the totals asked for, and says how the run ends.
    pub(crate) fn report(&self, report: Report, totals: Option<&Summary>) -> Exit {
        let (mut out, mut err) = (String::new(), String::new());
        if self.json {
            let mut object = report.json;
            if let Some(totals) = totals {
                object.insert("stats".into(), numbers(totals));
            }
            out = format!("{}\n", Value::Object(object));
        } else {
            if !self.quiet && !report.text.is_empty() {
                let text = if report.remark { &mut err } else { &mut out };
                text.push_str(report.text.trim_end());
                text.push('\n');
            }
            out.extend(totals.map(|totals| self.statistics(totals)));
        }
        self.print(&out, &err, report.exit)
    }

    /// Prints why a command stopped, with the hint, and says how the run ends.
    pub(crate) fn failure(&self, failure: &Failure, totals: Option<&Summary>) -> Exit {
        let (mut out, mut err) = (String::new(), String::new());
        if self.json {
            let mut object = json!({ "error": failure.to_json() });
            if let Some(totals) = totals {
                object["stats"] = numbers(totals);
            }
            out = format!("{object}\n");
        } else {
            err = format!("{BAD}kvik:{BAD:#} {}\n", failure.message());
            if let Some(hint) = failure.hint_text() {
                err.push_str(&format!("{NOTE}hint:{NOTE:#} {hint}\n"));
            }
            out.extend(totals.map(|totals| self.statistics(totals)));
        }
        self.print(&out, &err, failure.exit())
    }

    /// Something that went otherwise than it was asked for, and is no failure.
    pub(crate) fn warn(&self, text: &str) {
        self.remark(&format!("{NOTE}kvik: warning:{NOTE:#} {text}\n"));
    }

    /// A line about what is going on, for people.
    pub(crate) fn line(&self, text: &str) {
        self.remark(&format!("{text}\n"));
    }

    /// Prints the line on standard output that others wait for, whatever else is wanted. Nobody may be there to read it.
    pub(crate) fn ready(&self, text: &str) -> Result<()> {
        let mut stdout = self.stdout();
        let printed = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
        match printed {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(stdout_failure(&error)),
            _ => Ok(()),
        }
    }

    /// Something worth knowing while the command goes on.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.remark(&format!("{NOTE}kvik:{NOTE:#} {text}\n"));
        }
    }

    /// Nothing is no write: the stream may be one that nobody reads and that another thread waits for.
    fn remark(&self, text: &str) {
        if !text.is_empty() {
            let _ = self.stderr().write_all(text.as_bytes());
        }
    }

    /// Each stream in one write. Standard error is for people: who closed it wants none of it.
    fn print(&self, out: &str, err: &str, exit: Exit) -> Exit {
        self.remark(err);
        if self.aside {
            self.remark(out);
            return exit;
        }
        if out.is_empty() {
            return exit;
        }
        let mut stdout = self.stdout();
        let printed = stdout
            .write_all(out.as_bytes())
            .and_then(|()| stdout.flush());
        self.written(printed, exit)
    }

    /// How the run ends after printing: a reader that went away early is no failure, a full disk is one.
    pub(crate) fn written(&self, printed: io::Result<()>, exit: Exit) -> Exit {
        match printed {
            Ok(()) => exit,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => exit,
            Err(error) => {
                let failure = stdout_failure(&error);
                let _ = writeln!(self.stderr(), "{BAD}kvik:{BAD:#} {}", failure.message());
                // What stopped the command says more than what stopped its last words.
                if exit == Exit::Ok {
                    failure.exit()
                } else {
                    exit
                }
            }
        }
    }

    fn statistics(&self, totals: &Summary) -> String {
        match self.stats {
            Some(StatsForm::Json) => format!("{}\n", numbers(totals)),
            Some(StatsForm::Prometheus) => totals.to_prometheus(),
            _ => {
                let mut text = totals.to_string();
                // Those that the rows of the report show have been shown.
                let shown = |counter| KVIKIO.iter().any(|known| std::ptr::eq(*known, counter));
                for (counter, grown) in totals.counters() {
                    if grown > 0 && !shown(counter) {
                        let label = counter.metric().name.replace('_', " ");
                        text.push_str(&format!("  {label:LABEL$} {grown}\n"));
                    }
                }
                text
            }
        }
    }

    fn stdout(&self) -> AutoStream<io::Stdout> {
        AutoStream::new(io::stdout(), self.color)
    }

    fn stderr(&self) -> AutoStream<io::Stderr> {
        AutoStream::new(io::stderr(), self.color)
    }
}

/// Standard output that cannot be written to, other than by a reader that went away.
pub(crate) fn stdout_failure(error: &io::Error) -> Failure {
    Failure::at("write", "standard output", error)
}

/// The totals with every counter.
fn numbers(totals: &Summary) -> Value {
    // It is JSON by its own promise; the text itself is a better last resort than nothing.
    let text = totals.to_full_json();
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// The width of the label column in the table of [`Summary`], less the blank behind it.
const LABEL: usize = 20;
