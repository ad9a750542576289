//! What holds for the whole process: the first reading of file and environment, suggestions, and what the program sets.
//!
//! Nothing here waits. Readers load a pointer; writers build the next [`Base`] and exchange the pointer, and start again if
//! somebody was faster. A child forked in the middle of either finds the old base or the new one, never a held lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::{ArcSwapOption, Guard};

use crate::config::Config;
use crate::error::ConfigError;
use crate::layer::Layer;
use crate::origin::Origin;
use crate::{env, file};

/// The layers below every context, and their meaning.
#[derive(Clone)]
struct Base {
    suggestions: Layer,
    user_file: Layer,
    environment: Layer,
    process: Layer,
    config: Config,
}

static BASE: ArcSwapOption<Base> = ArcSwapOption::const_empty();

/// Counts the exchanges of `BASE`, so that a thread sees with one load whether what it keeps is still current.
static GENERATION: AtomicU64 = AtomicU64::new(0);

impl Config {
    /// Sets values for the whole process, over the environment, the user's file and defaults. Keys that `layer` does not
    /// name keep what was set before. Every thread sees the change at its next [`Config::current`].
    ///
    /// # Errors
    ///
    /// A value said in code is not one; then nothing is changed.
    pub fn set_process(layer: Layer) -> Result<(), ConfigError> {
        layer.check(&Origin::Process)?;
        exchange(|base| Base {
            process: base.process.clone().under(layer.clone()),
            ..base
        })
    }

    /// Says what a library on top of kvik would like, without taking anything from anybody: a suggestion only counts where
    /// neither the user's file nor the environment nor the program says anything, and the first suggestion stays.
    ///
    /// # Errors
    ///
    /// A value said in code is not one; then nothing is changed.
    ///
    /// # Example: the program's choice stays
    ///
    /// ```
    /// use kvik_config::{Config, Key, Layer, Origin};
    ///
    /// Config::set_process(Layer::new().num_threads(3))?;
    /// Config::suggest(Layer::new().num_threads(64).http_max_attempts(5))?; // by some component, later
    ///
    /// let config = Config::current();
    /// assert_eq!((config.num_threads()?, config.origin(Key::NumThreads)), (3, Origin::Process));
    /// assert_eq!((config.http_max_attempts()?, config.origin(Key::HttpMaxAttempts)), (5, Origin::Suggestion));
    /// # Ok::<(), kvik_config::ConfigError>(())
    /// ```
    pub fn suggest(layer: Layer) -> Result<(), ConfigError> {
        layer.check(&Origin::Suggestion)?;
        exchange(|base| Base {
            suggestions: layer.clone().under(base.suggestions.clone()),
            ..base
        })
    }
}

/// The number of the base that [`base_config`] returns now or a later one.
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// What holds for the process, without any context. Reads the environment and the user's file where nobody has yet.
pub(crate) fn base_config() -> Config {
    match &*BASE.load() {
        Some(base) => base.config.clone(),
        None => first().config.clone(),
    }
}

/// The base of this process, made by whoever comes first. Not a `OnceLock`: a child forked while another thread is inside
/// one would wait for that thread forever. Two first comers both read; one result is kept.
fn first() -> Arc<Base> {
    let variables = env::variables();
    // The process must go on without its file: what is wrong becomes part of the layer.
    let user_file = file::user_file(&variables).map(Option::unwrap_or_default);
    let base = Base {
        suggestions: Layer::new(),
        user_file: user_file.unwrap_or_else(Layer::unusable),
        environment: Layer::from_vars(variables),
        process: Layer::new(),
        config: Config::default(),
    };
    let none: Option<Arc<Base>> = None;
    let made = Arc::new(base.resolved());
    let before = BASE.compare_and_swap(&none, Some(Arc::clone(&made)));
    Guard::into_inner(before).unwrap_or(made)
}

/// Replaces the base by what `next` makes of it; again where somebody else was faster.
fn exchange(next: impl Fn(Base) -> Base) -> Result<(), ConfigError> {
    loop {
        let before = BASE.load_full().unwrap_or_else(first);
        let after = Arc::new(next(Base::clone(&before)).resolved());
        let found = BASE.compare_and_swap(&before, Some(after));
        if found
            .as_ref()
            .is_some_and(|found| Arc::ptr_eq(found, &before))
        {
            GENERATION.fetch_add(1, Ordering::Release);
            return Ok(());
        }
    }
}

impl Base {
    /// With the meaning of its layers. They were checked when they came in, so none is refused here.
    fn resolved(self) -> Base {
        let layers = [
            (&self.suggestions, Origin::Suggestion),
            (&self.user_file, Origin::Default),
            (&self.environment, Origin::Default),
            (&self.process, Origin::Process),
        ];
        let mut config = Config::default();
        for (layer, origin) in layers {
            config = config.heard(layer, &origin);
        }
        Base {
            config,
            ..self.clone()
        }
    }
}
