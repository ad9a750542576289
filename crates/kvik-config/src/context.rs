//! What holds for one thread: contexts over the process, and the thread's own copy of the result.

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::config::Config;
use crate::error::ConfigError;
use crate::layer::Layer;
use crate::origin::Origin;
use crate::process;

/// A layer that holds for this thread until the guard is dropped.
///
/// Contexts nest: the one entered last wins. They may be dropped in any order; each takes only its own layer away. The guard
/// stays on its thread, and no other thread sees its layer.
///
/// # Example: what does not compile
///
/// ```compile_fail
/// use kvik_config::{Config, Layer};
///
/// let context = Config::enter(Layer::new()).unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(move || drop(context)); // `*const ()` cannot be sent between threads
/// });
/// ```
#[must_use = "the context ends when the guard is dropped"]
#[derive(Debug)]
pub struct Context {
    id: u64,
    /// Neither `Send` nor `Sync`: the layer lies on the stack of the thread that entered.
    _thread: PhantomData<*const ()>,
}

/// What a thread keeps.
struct Local {
    /// The generation of the process that `current` was made from.
    generation: u64,
    current: Option<Config>,
    contexts: Vec<(u64, Layer)>,
    next: u64,
}

thread_local! {
    static LOCAL: RefCell<Local> =
        const { RefCell::new(Local { generation: 0, current: None, contexts: Vec::new(), next: 0 }) };
}

impl Config {
    /// What holds for the calling thread now: defaults, suggestions, the user's file, the environment, what the program has
    /// set, and the contexts that this thread has entered.
    ///
    /// The first call in a process reads the environment and the user's file; neither is looked at again. Later calls take
    /// no lock and share no memory with other threads until something is set.
    #[must_use]
    pub fn current() -> Config {
        // While the thread ends its locals are gone; what holds for the process still holds.
        LOCAL
            .try_with(|local| local.borrow_mut().current())
            .unwrap_or_else(|_| process::base_config())
    }

    /// Enters a context: `layer` holds for this thread, over everything set for the process, until the guard is dropped.
    ///
    /// # Errors
    ///
    /// A value said in code is not one; then nothing is changed.
    ///
    /// # Example: more threads for a while
    ///
    /// ```
    /// use kvik_config::{Config, Layer};
    ///
    /// let before = Config::current().num_threads()?;
    /// {
    ///     let _context = Config::enter(Layer::new().num_threads(9))?;
    ///     assert_eq!(Config::current().num_threads()?, 9);
    /// }
    /// assert_eq!(Config::current().num_threads()?, before);
    /// # Ok::<(), kvik_config::ConfigError>(())
    /// ```
    pub fn enter(layer: Layer) -> Result<Context, ConfigError> {
        layer.check(&Origin::Context)?;
        // While the thread ends there is nothing left that could ask, so the context need not be kept.
        let id = LOCAL
            .try_with(|local| local.borrow_mut().enter(layer))
            .unwrap_or_default();
        Ok(Context {
            id,
            _thread: PhantomData,
        })
    }
}

impl Local {
    fn current(&mut self) -> Config {
        // The generation first: if the process moves on in between, the next call makes a new copy.
        let generation = process::generation();
        match &self.current {
            Some(config) if self.generation == generation => config.clone(),
            _ => {
                let base = process::base_config().apart();
                let config = self.contexts.iter().fold(base, |config, (_, layer)| {
                    config.heard(layer, &Origin::Context)
                });
                self.generation = generation;
                self.current.insert(config).clone()
            }
        }
    }

    fn enter(&mut self, layer: Layer) -> u64 {
        self.next += 1;
        self.contexts.push((self.next, layer));
        self.current = None;
        self.next
    }

    fn leave(&mut self, id: u64) {
        self.contexts.retain(|(other, _)| *other != id);
        self.current = None;
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // An error means that the thread ends and its contexts are gone already.
        let _ = LOCAL.try_with(|local| local.borrow_mut().leave(self.id));
    }
}
