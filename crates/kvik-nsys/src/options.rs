//! What the plugin is asked for.
//!
//! The grammar is that of KvikIO's plugin, to the letter, and is read here by hand: Nsight Systems cuts `kvikio_nic,-d,eth0` at
//! its commas and hands over each piece as it is. A value stands in the argument of its option, `-deth0` and `--device=eth0`, or
//! is the next argument, whatever that looks like; of an option that stands twice the last one holds; help wins from where it stands.

use std::ffi::OsString;
use std::time::Duration;

use regex_lite::Regex;

/// What a command line asks for.
#[derive(Clone, Debug)]
pub enum Request {
    /// To say how it is used.
    Help,
    /// To sample.
    Run(Options),
}

/// How to sample, and what.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// From one sample to the next.
    pub interval: Duration,
    /// The interfaces that are asked for by name; without it, all that are up.
    pub device: Option<Device>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            interval: INTERVAL,
            device: None,
        }
    }
}

/// Interfaces by a regular expression that the whole of a name has to match.
#[derive(Clone, Debug)]
pub struct Device {
    text: String,
    whole: Regex,
}

/// Why a command line is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Wrong {
    /// There is no such option.
    #[error("there is no option '{0}'")]
    Option(String),
    /// The last argument is an option that a value has to follow.
    #[error("option '{0}' needs a value")]
    NoValue(String),
    /// Something that is no option.
    #[error("argument '{0}' is not expected")]
    Argument(String),
    /// Not a number of microseconds.
    #[error("interval '{0}' is not a positive number of microseconds")]
    Interval(String),
    /// Not a regular expression.
    #[error("'{text}' is not a regular expression: {why}")]
    Device {
        /// What was given.
        text: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Request {
    /// Reads a command line, of which the first argument is the name of the program.
    ///
    /// # Errors
    ///
    /// The first thing that is not understood.
    ///
    /// # Example: three ways to say the same
    ///
    /// ```
    /// use kvik_nsys::Request;
    ///
    /// for args in [&["", "-d", "eth0"][..], &["", "-deth0"], &["", "--device=eth0"]] {
    ///     let Request::Run(options) = Request::parse(args.iter().copied())? else { panic!() };
    ///     let device = options.device.unwrap();
    ///     assert!(device.matches("eth0") && !device.matches("eth01"));
    /// }
    /// # Ok::<(), kvik_nsys::Wrong>(())
    /// ```
    pub fn parse<I, T>(args: I) -> Result<Request, Wrong>
    where
        I: IntoIterator<Item = T>,
        T: Into<OsString>,
    {
        // No name of an interface and no number is lost by it; the rest is an error, which shows it.
        let mut args = args
            .into_iter()
            .skip(1)
            .map(|arg| arg.into().to_string_lossy().into_owned());
        let mut options = Options::default();
        while let Some(arg) = args.next() {
            let (name, attached) = split(&arg)?;
            let which = match name {
                "-h" | "--help" => return Ok(Request::Help),
                "-i" | "--interval" => Which::Interval,
                "-d" | "--device" => Which::Device,
                _ => return Err(Wrong::Option(arg)),
            };
            let value = match attached {
                Some(value) => value.to_owned(),
                None => args.next().ok_or_else(|| Wrong::NoValue(name.to_owned()))?,
            };
            match which {
                Which::Interval => options.interval = interval(&value)?,
                Which::Device => options.device = Some(Device::new(value)?),
            }
        }
        Ok(Request::Run(options))
    }
}

enum Which {
    Interval,
    Device,
}

impl Device {
    /// The interfaces whose whole name matches `text`, so none for an empty one.
    ///
    /// # Errors
    ///
    /// [`Wrong::Device`]: it is no regular expression. Neither are one that looks around and one that refers back to what it
    /// has matched.
    pub fn new(text: String) -> Result<Device, Wrong> {
        // By itself at first: `a)|(b` is none, though it is one within brackets.
        let whole = Regex::new(&text).and_then(|_| Regex::new(&format!(r"\A(?:{text})\z")));
        match whole {
            Ok(whole) => Ok(Device { text, whole }),
            Err(error) => Err(Wrong::Device {
                text,
                why: error.to_string(),
            }),
        }
    }

    /// Whether an interface of this name is meant.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.whole.is_match(name)
    }

    /// As it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// The name of an option, and the value in the same argument.
fn split(arg: &str) -> Result<(&str, Option<&str>), Wrong> {
    if arg.starts_with("--") {
        return Ok(match arg.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (arg, None),
        });
    }
    let letter = arg.strip_prefix('-').and_then(|rest| rest.chars().next());
    let Some(letter) = letter else {
        return Err(Wrong::Argument(arg.to_owned()));
    };
    let (name, value) = arg.split_at(1 + letter.len_utf8());
    Ok((name, Some(value).filter(|value| !value.is_empty())))
}

fn interval(text: &str) -> Result<Duration, Wrong> {
    // `parse` takes a sign, which is none of ours.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    // What does not fit into a signed number is no interval of KvikIO's, and longer than anybody samples.
    let micros = text.parse::<u64>().ok().filter(|_| digits);
    let micros = micros.filter(|micros| (1..=i64::MAX.unsigned_abs()).contains(micros));
    micros
        .map(Duration::from_micros)
        .ok_or_else(|| Wrong::Interval(text.to_owned()))
}

const INTERVAL: Duration = Duration::from_millis(20);

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
