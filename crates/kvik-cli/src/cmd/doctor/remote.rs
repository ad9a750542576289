//! The way to a remote object, as `RemoteOptions::diagnose` has walked it.

use std::fmt::Write;

use kvik::{Diagnosis, Outcome, RemoteOptions, Step};
use serde_json::{Map, Value, json};

use super::count;
use crate::Exit;
use crate::output::Report;
use crate::style::{BAD, FAINT, GOOD, HEADING, NOTE};

pub(super) fn run(url: &str) -> Report {
    report(&RemoteOptions::new().diagnose(url))
}

fn report(diagnosis: &Diagnosis) -> Report {
    let verdict = verdict(diagnosis);
    let mut text = format!("{HEADING}{}{HEADING:#}\n", diagnosis.url);
    for step in &diagnosis.steps {
        write(step, &mut text);
    }
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{HEADING}verdict{HEADING:#}\n  {verdict}");
    let findings: Vec<Value> = diagnosis.steps.iter().map(as_finding).collect();
    let object = json!({ "url": diagnosis.url, "findings": findings, "verdict": verdict });
    let exit = diagnosis
        .failure()
        .map_or(Exit::Ok, |(_, kind)| kind.into());
    Report::new(object).text(text).exit(exit)
}

fn write(step: &Step, text: &mut String) {
    let style = match step.outcome {
        Outcome::Ok => GOOD,
        Outcome::Note => NOTE,
        Outcome::NotReached => FAINT,
        _ => BAD,
    };
    let (level, stage) = (level(step.outcome), step.stage);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  {style}{level:8}{style:#}{stage:12}{}", step.what);
    for (name, value) in &step.facts {
        let name = name.replace('_', " ");
        let _ = writeln!(text, "{:22}{name:20}{value}", "");
    }
    if let Some(advice) = &step.advice {
        let _ = writeln!(text, "          -> {advice}");
    }
}

fn as_finding(step: &Step) -> Value {
    let facts = step.facts.iter();
    let facts: Map<String, Value> = facts
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    let error = match step.outcome {
        Outcome::Failed(kind) => Some(kind.to_string()),
        _ => None,
    };
    json!({
        "stage": step.stage.name(),
        "level": level(step.outcome),
        "what": step.what,
        "facts": facts,
        "advice": step.advice,
        "kind": error,
    })
}

fn level(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::Note => "note",
        Outcome::NotReached => "skipped",
        _ => "problem",
    }
}

fn verdict(diagnosis: &Diagnosis) -> String {
    let notes = diagnosis
        .steps
        .iter()
        .filter(|step| step.outcome == Outcome::Note);
    let notes = count(notes.count(), "note");
    match diagnosis.failure() {
        None => format!("kvik reads this object; no problems, {notes}"),
        Some((step, _)) => format!("{} stands in the way; 1 problem, {notes}", step.stage),
    }
}
