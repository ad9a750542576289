//! The lines that the tool writes down.

use std::fs::File;
use std::io::Write;

use crate::abi::{self, Counter, CounterSemantics, Schema, Semantics};
use crate::text;

/// Appends one line, whole, so that a test that reads meanwhile sees no half of it but at the end.
#[expect(
    clippy::disallowed_methods,
    reason = "a library of the machine, which knows no setting of kvik's"
)]
pub(crate) fn line(line: &str) {
    let Some(path) = std::env::var_os("FAKE_NVTX_LOG") else {
        return;
    };
    let mut file = File::options()
        .append(true)
        .create(true)
        .open(path)
        .expect("FAKE_NVTX_LOG names a file that can be written");
    file.write_all(format!("{line}\n").as_bytes())
        .expect("there is room for the log");
}

/// Whether this run of the tests wants the tool to refuse `what`.
#[expect(clippy::disallowed_methods, reason = "as above")]
pub(crate) fn refuses(what: &str) -> bool {
    std::env::var_os("FAKE_NVTX_REFUSE").is_some_and(|refused| refused == what)
}

/// Sizes and alignments of the types of C.
///
/// # Safety
///
/// Null, or a table of which the first row says how many there are.
pub(crate) unsafe fn types(table: *const [u16; 2]) -> String {
    // SAFETY: the caller answers for it.
    let Some(&[count, 4]) = (unsafe { table.as_ref() }) else {
        return String::new();
    };
    // SAFETY: as above.
    let table = unsafe { std::slice::from_raw_parts(table, usize::from(count)) };
    let types = table[1..]
        .iter()
        .map(|[size, align]| format!("{size}/{align}"));
    format!(" types={}", types.collect::<Vec<_>>().join(","))
}

/// # Safety
///
/// The description is whole: its texts are C strings, and it has as many entries as it says.
pub(crate) unsafe fn schema(id: u64, schema: &Schema) {
    // SAFETY: the caller answers for it.
    let name = unsafe { text(schema.name) };
    line(&format!(
        "schema {id} {name:?} type={} flags={:#x} size={} mask={:#x} align={} id={}",
        schema.kind,
        schema.flags,
        schema.static_size,
        schema.field_mask,
        schema.pack_align,
        schema.schema
    ));
    // SAFETY: the caller answers for their number.
    let entries = unsafe { std::slice::from_raw_parts(schema.entries, schema.entry_count) };
    for entry in entries {
        // SAFETY: the caller answers for it.
        let name = unsafe { text(entry.name) };
        // SAFETY: as above.
        let description = unsafe { text(entry.description) };
        // SAFETY: as above.
        let semantics = unsafe { semantics(entry.semantics) };
        line(&format!(
            "field {id} {name:?} type={} offset={} {description:?} flags={:#x}{semantics}",
            entry.kind, entry.offset, entry.flags
        ));
    }
}

/// # Safety
///
/// The description is whole: its texts are C strings.
pub(crate) unsafe fn counter(id: u64, domain: usize, counter: &Counter) {
    assert_eq!(counter.struct_size, size_of::<Counter>());
    // SAFETY: the caller answers for it.
    let name = unsafe { text(counter.name) };
    // SAFETY: as above.
    let description = unsafe { text(counter.description) };
    // SAFETY: as above.
    let semantics = unsafe { semantics(counter.semantics) };
    line(&format!(
        "counter {id} domain={domain} schema={} {name:?} {description:?} scope={} id={}{semantics}",
        counter.schema, counter.scope, counter.counter
    ));
}

/// # Safety
///
/// Null, or a list of which each link is as long as it says.
unsafe fn semantics(first: *const Semantics) -> String {
    let mut all = String::new();
    let mut next = first;
    // SAFETY: the caller answers for the list.
    while let Some(link) = unsafe { next.as_ref() } {
        if link.id == abi::COUNTER_SEMANTICS {
            assert_eq!(link.struct_size as usize, size_of::<CounterSemantics>());
            // SAFETY: that is what this number stands for, and it has the size.
            let counter = unsafe { &*next.cast::<CounterSemantics>() };
            // SAFETY: the caller answers for it.
            let unit = unsafe { text(counter.unit) };
            all += &format!(
                " version={} semantics={:#x} unit={unit:?}*{}/{} limits={}:{:?}",
                link.version,
                counter.flags,
                counter.numerator,
                counter.denominator,
                counter.limit_type,
                counter.limits
            );
        } else {
            all += &format!(" semantics-of-kind={}", link.id);
        }
        next = link.next;
    }
    all
}
