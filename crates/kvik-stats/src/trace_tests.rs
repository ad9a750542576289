//! What once could break: tasks beside their operation instead of below it, and spans that nobody closes.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::listener::tests::alone;
use crate::{Backend, Direction, Memory, Start, begin};

/// A span with all its fields, and the one that it is below.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    id: u64,
    name: &'static str,
    parent: Option<&'static str>,
    fields: BTreeMap<String, String>,
    closed: bool,
}

#[derive(Clone, Default)]
struct Recording(Arc<Mutex<Vec<Seen>>>);

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        self.fields.insert(field.name().to_owned(), text);
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Recording {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let parent = context.span(id).and_then(|span| span.parent());
        let mut seen = Seen {
            id: id.into_u64(),
            name: attributes.metadata().name(),
            parent: parent.map(|parent| parent.name()),
            ..Seen::default()
        };
        attributes.record(&mut seen);
        self.0.lock().unwrap().push(seen);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        values.record(open(&mut self.0.lock().unwrap(), id));
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        open(&mut self.0.lock().unwrap(), &id).closed = true;
    }
}

/// The open span of this number; numbers are used again.
fn open<'s>(seen: &'s mut [Seen], id: &Id) -> &'s mut Seen {
    let is_it = |seen: &&mut Seen| !seen.closed && seen.id == id.into_u64();
    seen.iter_mut().find(is_it).unwrap()
}

fn read() {
    let operation = begin(Start {
        backend: Backend::Gds,
        direction: Direction::Read,
        memory: Memory::Device,
        source: &"/data/a.bin".into(),
        offset: 8,
        size: 16,
    });
    if let Some(tasks) = operation.tasks() {
        tasks.begin("cufile", 8, 10).finish("cufile", 10, true);
        drop(tasks.begin("cufile", 18, 6));
    }
    operation.finish(16, true);
}

/// What is recorded of a read below a span of the caller's, up to this level.
fn recorded(level: LevelFilter) -> Vec<Seen> {
    let recording = Recording::default();
    let layer = recording.clone().with_filter(level);
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::with_default(subscriber, || {
        let _caller = tracing::error_span!("caller").entered();
        read();
    });
    let seen = recording.0.lock().unwrap();
    for found in seen.iter() {
        assert!(found.closed, "{found:?}");
    }
    seen.clone()
}

#[track_caller]
fn fields(seen: &Seen, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        let found = seen.fields.get(*name);
        assert_eq!(
            found.map(String::as_str),
            Some(*value),
            "{name} of {seen:?}"
        );
    }
}

#[test]
fn a_read_is_a_span_below_the_callers_and_its_tasks_are_below_it() {
    let _turn = alone();
    let seen = recorded(LevelFilter::TRACE);
    let names: Vec<_> = seen.iter().map(|seen| (seen.name, seen.parent)).collect();
    assert_eq!(
        names,
        [
            ("caller", None),
            ("operation", Some("caller")),
            ("task", Some("operation")),
            ("task", Some("operation"))
        ]
    );
    fields(
        &seen[1],
        &[
            ("backend", "\"GDS\""),
            ("direction", "\"READ\""),
            ("memory", "\"DEVICE\""),
            ("source", "\"/data/a.bin\""),
            ("offset", "8"),
            ("size", "16"),
            ("bytes", "16"),
            ("ok", "true"),
        ],
    );
    let engine = ("engine", "\"cufile\"");
    fields(
        &seen[2],
        &[engine, ("offset", "8"), ("bytes", "10"), ("ok", "true")],
    );
    fields(
        &seen[3],
        &[engine, ("size", "6"), ("bytes", "0"), ("ok", "false")],
    );
    assert_eq!(seen[1].fields["id"], seen[2].fields["operation"]);
}

#[test]
fn tasks_are_traced_at_their_level_only_and_nothing_where_nobody_wants_it() {
    let _turn = alone();
    let names = |level| {
        let seen = recorded(level);
        seen.iter().map(|seen| seen.name).collect::<Vec<_>>()
    };
    assert_eq!(names(LevelFilter::DEBUG), ["caller", "operation"]);
    assert_eq!(names(LevelFilter::INFO), ["caller"]);
}
