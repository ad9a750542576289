//! The values that are words: compatibility mode, direct I/O, backends, log levels.

use std::fmt;
use std::str::FromStr;

use crate::error::ParseValueError;

/// An enum whose values have a canonical word and further spellings, none of them sensitive to case.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $number:literal: $word:literal $(| $other:literal)*,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$vmeta])* $variant = $number,)*
        }

        impl $name {
            /// All values.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// The canonical spelling.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)*
                }
            }

            /// The spellings for documentation and error messages.
            pub(crate) const EXPECTED: &str = concat!("one of", $(" `", $word, "`", $(" `", $other, "`",)*)*);
        }

        impl FromStr for $name {
            type Err = ParseValueError;

            fn from_str(text: &str) -> Result<Self, ParseValueError> {
                let word = text.trim().to_ascii_lowercase();
                match word.as_str() {
                    $($word $(| $other)* => Ok($name::$variant),)*
                    _ => Err(ParseValueError::new(text, $name::EXPECTED)),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }
    };
}

words! {
    /// Whether compatibility mode is on, that is, whether cuFile is left alone. The numbers are KvikIO's, whose three they
    /// stay.
    CompatMode {
        /// cuFile, or an error that names the check that failed.
        Off = 0: "off" | "false" | "no" | "0",
        /// Never cuFile.
        On = 1: "on" | "true" | "yes" | "1",
        /// cuFile only where a direct path was proven for the file.
        Auto = 2: "auto",
    }
}

words! {
    /// Whether reads or writes go past the page cache (`O_DIRECT`). KvikIO has nothing that corresponds.
    DirectIo {
        /// Where it is possible and faster.
        Auto = 0: "auto",
        /// Wherever whole blocks are moved; an error where it is not possible.
        Always = 1: "always",
        /// Nowhere.
        Never = 2: "never",
    }
}

words! {
    /// Which machinery fetches remote ranges. The numbers are KvikIO's; there may be more.
    #[non_exhaustive]
    RemoteIoBackend {
        /// One blocking request per task, on the threads of the pool.
        EasyThreadpool = 0: "easy_threadpool",
        /// Many requests per thread, on event loops.
        MultiPoll = 1: "multi_poll",
    }
}

words! {
    /// What the next event loop is given. The numbers are KvikIO's; there may be more.
    #[non_exhaustive]
    RemoteReactorDispatch {
        /// Each chunk of a read.
        PerChunk = 0: "per_chunk",
        /// Each read as a whole.
        PerPread = 1: "per_pread",
    }
}

words! {
    /// How serious an event must be to be logged, least serious first. The scale is complete: it begins with everything and
    /// ends with nothing.
    #[derive(PartialOrd, Ord)]
    LogLevel {
        /// Everything.
        Trace = 0: "trace",
        /// What is of use when looking for a mistake.
        Debug = 1: "debug",
        /// What happens once in a while.
        Info = 2: "info",
        /// What went wrong and was mended, such as a repeated request.
        Warn = 3: "warn",
        /// What went wrong.
        Error = 4: "error",
        /// What makes going on pointless.
        Critical = 5: "critical",
        /// Nothing.
        Off = 6: "off",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_parses_in_any_case_to_its_value() {
        fn check<
            T: FromStr<Err = ParseValueError> + PartialEq + fmt::Debug + fmt::Display + Copy,
        >(
            all: &[T],
        ) {
            for &value in all {
                assert_eq!(value.to_string().parse(), Ok(value));
                assert_eq!(
                    format!(" {} ", value.to_string().to_uppercase()).parse(),
                    Ok(value)
                );
            }
        }
        check(CompatMode::ALL);
        check(DirectIo::ALL);
        check(RemoteIoBackend::ALL);
        check(RemoteReactorDispatch::ALL);
        check(LogLevel::ALL);
    }

    #[test]
    fn the_numbers_are_kvikios() {
        assert_eq!(
            [
                CompatMode::Off as u8,
                CompatMode::On as u8,
                CompatMode::Auto as u8
            ],
            [0, 1, 2]
        );
        assert_eq!(
            [
                RemoteIoBackend::EasyThreadpool as u8,
                RemoteIoBackend::MultiPoll as u8
            ],
            [0, 1]
        );
        assert_eq!(
            [
                RemoteReactorDispatch::PerChunk as u8,
                RemoteReactorDispatch::PerPread as u8
            ],
            [0, 1]
        );
    }

    #[test]
    fn log_levels_are_ordered_by_seriousness() {
        assert!(LogLevel::ALL.is_sorted());
        assert!(LogLevel::Trace < LogLevel::Off);
    }

    #[test]
    fn an_error_lists_the_spellings() {
        let error = "allow"
            .parse::<CompatMode>()
            .expect_err("not a compatibility mode");
        assert_eq!(
            error.to_string(),
            "\"allow\" is not one of `off` `false` `no` `0` `on` `true` `yes` `1` `auto`"
        );
    }
}
