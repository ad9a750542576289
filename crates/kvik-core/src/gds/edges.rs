//! Writes that begin or end within a page: cuFile reads that page, changes it and writes it back, so that another write to the rest
//! of it must not come in between.
//!
//! Whoever writes to a part of a page without touching the bytes of this write writes to parts of pages, too. So it is enough that
//! such writes to one file, by whatever handle of this process, come one after the other. That holds among transfers that begin
//! by cuFile, which alone come here: what is written to the same page at the same time in another way may be lost.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::{Arc, Weak};

use crate::corridor::Plan;
use crate::pool::shared_value;
use crate::sync::{Mutex, lock};

/// Whether a write to this range of a file leaves a part of a page as it is.
pub(crate) fn has_edges(range: &Range<u64>) -> bool {
    !range.start.is_multiple_of(Plan::ALIGNMENT) || !range.end.is_multiple_of(Plan::ALIGNMENT)
}

/// What such writes to `file` hold while they run.
///
/// # Errors
/// What the file system says.
pub(super) fn edges(file: &File) -> io::Result<Arc<Mutex<()>>> {
    let known = file.metadata()?;
    let file = (known.dev(), known.ino());
    let mut all = lock(shared_value(&EDGES, Mutex::default));
    if let Some(edges) = all.get(&file).and_then(Weak::upgrade) {
        return Ok(edges);
    }
    all.retain(|_, edges| edges.strong_count() > 0);
    let edges = Arc::default();
    all.insert(file, Arc::downgrade(&edges));
    Ok(edges)
}

type Edges = Mutex<HashMap<(u64, u64), Weak<Mutex<()>>>>;

static EDGES: AtomicPtr<Edges> = AtomicPtr::new(ptr::null_mut());
