//! Which engines a file may use, and why: a decision of facts alone.
//!
//! The wish (compat mode, engine preference) and the facts go in, a [`Route`] or the error that names the failed check comes out.
//! Nothing is asked of the machine here.

mod device;
mod direct_path;

use std::borrow::Cow;
use std::fmt;

use kvik_config::CompatMode;

use crate::engine::EngineKind;
use crate::error::{Error, ErrorKind, Op, Result};

pub(crate) use device::unrecorded;
pub use device::{AllowedWay, Check, CuFileCheck, DeviceRoute, DeviceWay};
pub(crate) use direct_path::{is_served_by_nvidia_fs, sign_of_direct_path};

/// Which engine a caller asks for, among those that the compat mode leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EnginePreference {
    /// Whichever fits each call best.
    #[default]
    Auto,
    /// This one and no other.
    Only(EngineKind),
}

/// The facts that decide.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The first check that cuFile failed, where it was asked for: a clause without a stop.
    pub(crate) without_cufile: Option<Cow<'static, str>>,
    /// Why no ring of io_uring can be had, where it was asked for one: a clause without a stop.
    pub(crate) without_uring: Option<Cow<'static, str>>,
}

/// The engines that a handle may use and those that it may not, each with the reason.
///
/// A handle fixes this set when it is opened, and can only lose some later, when the file system refuses them; each call
/// picks among the allowed ones. `Display` is what `kvik stat` and `kvik doctor`
/// show.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Route {
    /// The compat mode it was resolved from: `off`, `on` or `auto`.
    pub wanted: CompatMode,
    /// The engines that may be used, the preferred one first. Never empty.
    pub allowed: Vec<Allowed>,
    /// Those that may not.
    pub ruled_out: Vec<RuledOut>,
}

/// An engine of a [`Route`] that may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Allowed {
    /// The engine.
    pub engine: EngineKind,
    /// Why, in a clause without a stop.
    pub why: Cow<'static, str>,
}

/// A way that a [`Route`] does not take.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RuledOut {
    /// Its name; it may be no engine of this build.
    pub engine: Cow<'static, str>,
    /// Why not, in a clause without a stop.
    pub why: Cow<'static, str>,
}

impl Route {
    /// Adds an engine before all others.
    pub(crate) fn prefer(&mut self, engine: EngineKind, why: impl Into<Cow<'static, str>>) {
        let why = why.into();
        // What it leaves goes the plain way.
        self.allowed
            .retain(|allowed| allowed.engine == EngineKind::Posix);
        self.allowed.insert(0, Allowed { engine, why });
    }

    /// Takes away an engine for which another one of the set stands in.
    pub(crate) fn rule_out(&mut self, engine: EngineKind, why: &str) {
        self.allowed.retain(|allowed| allowed.engine != engine);
        self.ruled_out.push(RuledOut {
            engine: engine.to_string().into(),
            why: why.to_owned().into(),
        });
    }

    /// Whether `engine` may be used.
    #[must_use]
    pub fn allows(&self, engine: EngineKind) -> bool {
        self.allowed.iter().any(|allowed| allowed.engine == engine)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "compat mode {}", self.wanted)?;
        for Allowed { engine, why } in &self.allowed {
            write!(f, "\n  {:10}allowed: {why}", engine.to_string())?;
        }
        for RuledOut { engine, why } in &self.ruled_out {
            write!(f, "\n  {engine:10}ruled out: {why}")?;
        }
        Ok(())
    }
}

/// Decides which engines a file may use.
///
/// # Errors
/// `GdsUnavailable`: cuFile was required (`CompatMode::Off`) and cannot be used; the text names the check that failed.
pub(crate) fn resolve(
    wanted: CompatMode,
    preference: EnginePreference,
    facts: &Facts,
) -> Result<Route> {
    let cufile = match wanted {
        CompatMode::Off => {
            if let Some(why) = &facts.without_cufile {
                let why = format!("the compat mode OFF requires cuFile, which is {why}");
                return Err(Error::new(ErrorKind::GdsUnavailable, Op::Open, why));
            }
            DEVICES_ONLY
        }
        CompatMode::On => "the compat mode ON leaves it alone",
        CompatMode::Auto => DEVICES_ONLY,
    };
    let mut ruled_out = vec![RuledOut {
        engine: Cow::Borrowed("cuFile"),
        why: Cow::Borrowed(cufile),
    }];
    let allowed = |engine, why| Allowed {
        engine,
        why: Cow::Borrowed(why),
    };
    let allowed = match (preference, &facts.without_uring) {
        (EnginePreference::Auto, _) => {
            let learnt = "for large cached pieces, where it was found to be faster";
            vec![
                allowed(EngineKind::Posix, "works on every file system"),
                allowed(EngineKind::Scratch, learnt),
                #[cfg(target_arch = "x86_64")]
                allowed(EngineKind::Mapped, learnt),
                allowed(
                    EngineKind::Direct,
                    "for large pieces that are not cached, where it was found to be clearly faster",
                ),
            ]
        }
        (EnginePreference::Only(EngineKind::Uring), None) => vec![
            allowed(EngineKind::Uring, "asked for by the caller"),
            allowed(EngineKind::Posix, "stands in where a thread gets no ring"),
        ],
        (EnginePreference::Only(EngineKind::Uring), Some(why)) => {
            ruled_out.push(RuledOut {
                engine: Cow::Borrowed("uring"),
                why: why.clone(),
            });
            vec![allowed(EngineKind::Posix, "stands in for uring")]
        }
        (EnginePreference::Only(kind), _) => vec![allowed(kind, "asked for by the caller")],
    };
    Ok(Route {
        wanted,
        allowed,
        ruled_out,
    })
}

// Why cuFile is no engine for memory of the host.
const DEVICES_ONLY: &str = "it moves bytes of devices only";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        wanted: CompatMode,
        preference: EnginePreference,
        without_cufile: Option<&'static str>,
        expected: &str,
    ) {
        let facts = Facts {
            without_cufile: without_cufile.map(Cow::Borrowed),
            without_uring: None,
        };
        let text = match resolve(wanted, preference, &facts) {
            Ok(route) => {
                let engine = match preference {
                    EnginePreference::Auto => EngineKind::Posix,
                    EnginePreference::Only(engine) => engine,
                };
                assert!(route.allows(engine));
                assert_eq!(route.wanted, wanted);
                route.to_string()
            }
            Err(error) => {
                assert_eq!(
                    (error.kind(), error.op()),
                    (ErrorKind::GdsUnavailable, Op::Open)
                );
                error.to_string()
            }
        };
        assert_eq!(text, expected);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn on_and_auto_take_posix_and_off_names_the_failed_check() {
        use CompatMode::{Auto, Off, On};
        use EnginePreference::Only;
        check(
            Auto,
            EnginePreference::Auto,
            None,
            "compat mode auto\n  posix     allowed: works on every file system\n  scratch   allowed: for large cached pieces, where it was found to be faster\n  mapped    allowed: for large cached pieces, where it was found to be faster\n  direct    allowed: for large pieces that are not cached, where it was found to be clearly faster\n  cuFile    ruled out: it moves bytes of devices only",
        );
        check(
            Auto,
            Only(EngineKind::Posix),
            Some("not usable under WSL"),
            "compat mode auto\n  posix     allowed: asked for by the caller\n  cuFile    ruled out: it moves bytes of devices only",
        );
        check(
            Auto,
            Only(EngineKind::Mapped),
            None,
            "compat mode auto\n  mapped    allowed: asked for by the caller\n  cuFile    ruled out: it moves bytes of devices only",
        );
        check(
            On,
            EnginePreference::Auto,
            None,
            "compat mode on\n  posix     allowed: works on every file system\n  scratch   allowed: for large cached pieces, where it was found to be faster\n  mapped    allowed: for large cached pieces, where it was found to be faster\n  direct    allowed: for large pieces that are not cached, where it was found to be clearly faster\n  cuFile    ruled out: the compat mode ON leaves it alone",
        );
        check(
            Off,
            EnginePreference::Auto,
            Some("not installed"),
            "open: the compat mode OFF requires cuFile, which is not installed; set `compat_mode` to `auto` or `on`",
        );
        check(
            Off,
            Only(EngineKind::Posix),
            Some("not usable under WSL"),
            "open: the compat mode OFF requires cuFile, which is not usable under WSL; set `compat_mode` to `auto` or `on`",
        );
    }

    #[test]
    fn an_engine_that_is_asked_for_is_the_only_one_and_a_preferred_one_the_first() {
        let facts = Facts::default();
        let only = EnginePreference::Only(EngineKind::Direct);
        let route = resolve(CompatMode::Auto, only, &facts).unwrap();
        assert!(route.allows(EngineKind::Direct) && !route.allows(EngineKind::Posix));
        let mut route = resolve(CompatMode::On, EnginePreference::Auto, &facts).unwrap();
        route.prefer(EngineKind::Direct, "by a setting");
        assert_eq!(
            route.to_string(),
            "compat mode on\n  direct    allowed: by a setting\n  posix     allowed: works on every file system\n  cuFile    ruled out: the compat mode ON leaves it alone"
        );
    }

    #[test]
    fn an_engine_that_is_refused_later_is_ruled_out_with_the_reason() {
        let facts = Facts::default();
        let mut route = resolve(CompatMode::On, EnginePreference::Auto, &facts).unwrap();
        assert!(route.allows(EngineKind::Direct));
        route.rule_out(EngineKind::Direct, "a direct read was refused (EINVAL)");
        assert!(!route.allows(EngineKind::Direct) && route.allows(EngineKind::Posix));
        let text = route.to_string();
        let line = "\n  direct    ruled out: a direct read was refused (EINVAL)";
        assert!(text.ends_with(line), "{text}");
    }

    #[test]
    fn posix_stands_in_for_a_ring_that_cannot_be_had() {
        let route = |without_uring: Option<&'static str>| {
            let facts = Facts {
                without_uring: without_uring.map(Cow::Borrowed),
                ..Facts::default()
            };
            let wish = EnginePreference::Only(EngineKind::Uring);
            resolve(CompatMode::On, wish, &facts).unwrap()
        };
        assert!(route(None).allows(EngineKind::Uring));
        assert_eq!(
            route(None).to_string(),
            "compat mode on\n  uring     allowed: asked for by the caller\n  posix     allowed: stands in where a thread \
             gets no ring\n  cuFile    ruled out: the compat mode ON leaves it alone"
        );
        assert!(!route(Some("forbidden")).allows(EngineKind::Uring));
        assert_eq!(
            route(Some("forbidden")).to_string(),
            "compat mode on\n  posix     allowed: stands in for uring\n  cuFile    ruled out: the compat mode ON leaves it \
             alone\n  uring     ruled out: forbidden"
        );
    }

    #[test]
    fn off_opens_where_nothing_speaks_against_cufile() {
        let facts = Facts::default();
        let route = resolve(CompatMode::Off, EnginePreference::Auto, &facts).unwrap();
        let line = "\n  cuFile    ruled out: it moves bytes of devices only";
        assert!(route.to_string().ends_with(line), "{route}");
    }
}
