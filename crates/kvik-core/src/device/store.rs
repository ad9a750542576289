//! Things of a context that are kept between two uses: [`Store`].

use super::context::Context;
use crate::sync::{Mutex, lock};

/// What came back, by context. Whoever takes something out is its only user until it is put back.
pub(super) struct Store<T> {
    // There are few contexts. Those that were destroyed stay, with what died with them, and are never asked for again.
    kept: Mutex<Vec<(Context, Vec<T>)>>,
}

impl<T> Store<T> {
    pub(super) fn new() -> Store<T> {
        Store {
            kept: Mutex::new(Vec::new()),
        }
    }

    /// What was put back last: it is the likeliest to be at rest.
    pub(super) fn take(&self, context: Context) -> Option<T> {
        let mut kept = lock(&self.kept);
        let shelf = kept.iter_mut().find(|shelf| shelf.0 == context)?;
        shelf.1.pop()
    }

    pub(super) fn put(&self, context: Context, thing: T) {
        let mut kept = lock(&self.kept);
        match kept.iter_mut().find(|shelf| shelf.0 == context) {
            Some(shelf) => shelf.1.push(thing),
            None => kept.push((context, vec![thing])),
        }
    }
}
