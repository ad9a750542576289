//! Every setting once: name, variables, defaults, unit, effect, limits and sentence. All else that lists settings is made
//! from here.
//!
//! [`settings!`] hands the rows to another macro, which is how the accessors of `Config`, the setters of `Layer`, the
//! documentation page and the serialized form come from this one table.

use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::parse::{Rule, Setting};
use crate::proxy::ProxyUrl;
use crate::value::{CompatMode, DirectIo, LogLevel, RemoteIoBackend, RemoteReactorDispatch};
use crate::{ByteSize, cores};

/// Calls the macro `$then` with all rows. A row is the sentence (its doc comment), key, name, type and the fields of [`Row`].
/// Variables stand in the order in which they are looked at: ours first, then KvikIO's.
macro_rules! settings {
    ($then:ident) => {
        $then! {
            /// The most threads that work on one transfer at the same time, the calling one included. An engine may keep several
            /// tasks under way on each. The pool of threads is shared and only grows, to the largest number anybody has asked
            /// for. `auto` is the number of cores this process may use (affinity and cgroup quota), at most 16.
            NumThreads num_threads: usize {
                variables: &["KVIK_NUM_THREADS", "KVIK_NTHREADS", "KVIKIO_NTHREADS", "KVIKIO_NUM_THREADS"],
                default: "auto",
                kvikio_default: Some("1"),
                unit: "threads",
                effect: Effect::Now,
                rule: Rule::between(1, 1_024).or_auto(cores::usable_up_to_16),
            }
            /// The size of the tasks into which a range is cut.
            TaskSize task_size: ByteSize {
                variables: &["KVIK_TASK_SIZE", "KVIKIO_TASK_SIZE"],
                default: "4 MiB",
                kvikio_default: Some("4 MiB"),
                unit: "bytes",
                effect: Effect::Now,
                rule: Rule::at_least(1),
            }
            /// Reads and writes of host memory up to this size run on the caller's thread, without the pool. 0 sends
            /// everything through the pool. The default is where two threads begin to beat one, as `kvik bench file --case
            /// thresholds` measures it: between 1 and 2 MiB of cached file on two cores.
            InlineSize inline_size: ByteSize {
                variables: &["KVIK_INLINE_SIZE"],
                default: "1 MiB",
                kvikio_default: None,
                unit: "bytes",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// Whether cuFile is used: `off` = cuFile or an error, `on` = never cuFile, `auto` = cuFile only where a direct
            /// path was proven for the file. The words are KvikIO's: they say whether *compatibility mode* is on.
            CompatMode compat_mode: CompatMode {
                variables: &["KVIK_COMPAT_MODE", "KVIKIO_COMPAT_MODE"],
                default: "auto",
                kvikio_default: Some("auto"),
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// The file of the CUDA driver's library that is loaded, in place of the system's `libcuda.so.1`; empty for that
            /// one. It counts at the first use of a device in the process, and not again.
            CudaLibrary cuda_library: Option<PathBuf> {
                variables: &["KVIK_CUDA_LIBRARY"],
                default: "",
                kvikio_default: None,
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// The file of cuFile's library that is loaded, in place of the system's `libcufile.so.0`; empty for that one.
            CufileLibrary cufile_library: Option<PathBuf> {
                variables: &["KVIK_CUFILE_LIBRARY"],
                default: "",
                kvikio_default: None,
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// Reads and writes of device memory below this size do not use cuFile, whatever the compat mode.
            GdsThreshold gds_threshold: ByteSize {
                variables: &["KVIK_GDS_THRESHOLD", "KVIKIO_GDS_THRESHOLD"],
                default: "16 KiB",
                kvikio_default: Some("16 KiB"),
                unit: "bytes",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// The most bytes in one block of scratch memory between a file and its target. The process has no more than 16 such
            /// blocks, and what finds none goes without.
            BounceBufferSize bounce_buffer_size: ByteSize {
                variables: &["KVIK_BOUNCE_BUFFER_SIZE", "KVIKIO_BOUNCE_BUFFER_SIZE"],
                default: "16 MiB",
                kvikio_default: Some("16 MiB"),
                unit: "bytes",
                effect: Effect::Now,
                rule: Rule::at_least(1),
            }
            /// Whether reads may bypass the page cache (`O_DIRECT`). This is a permission, not an order: where it is given,
            /// kvik decides by file system, alignment and what it measured whether to make use of it.
            AutoDirectIoRead auto_direct_io_read: bool {
                variables: &["KVIK_AUTO_DIRECT_IO_READ", "KVIKIO_AUTO_DIRECT_IO_READ"],
                default: "off",
                kvikio_default: Some("off"),
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// Whether writes may bypass the page cache (`O_DIRECT`). A permission, not an order, as with
            /// `auto_direct_io_read`; KvikIO writes directly wherever the alignment allows it.
            AutoDirectIoWrite auto_direct_io_write: bool {
                variables: &["KVIK_AUTO_DIRECT_IO_WRITE", "KVIKIO_AUTO_DIRECT_IO_WRITE"],
                default: "on",
                kvikio_default: Some("on"),
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// Whether a direct read may read the aligned blocks around an unaligned range and drop the surplus. Where nobody
            /// has said `off`, kvik does: going through the page cache for the edges takes longer.
            AutoDirectIoReadOverread auto_direct_io_read_overread: bool {
                variables: &["KVIK_AUTO_DIRECT_IO_READ_OVERREAD", "KVIKIO_AUTO_DIRECT_IO_READ_OVERREAD"],
                default: "off",
                kvikio_default: Some("off"),
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// Whether reads go past the page cache (`O_DIRECT`): `always` = wherever whole blocks are read, and files that
            /// cannot be read so are not opened; `never` = nowhere; `auto` = where it is faster. Under `auto`, an
            /// `auto_direct_io_read` that somebody has set decides: `on` = wherever the file allows it, `off` = nowhere.
            DirectRead direct_read: DirectIo {
                variables: &["KVIK_DIRECT_READ"],
                default: "auto",
                kvikio_default: None,
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// Whether writes go past the page cache, as `direct_read` for reads: bytes that do not fill a page go through
            /// the page cache even with `always`. Under `auto`, an `auto_direct_io_write` that somebody has set decides.
            DirectWrite direct_write: DirectIo {
                variables: &["KVIK_DIRECT_WRITE"],
                default: "auto",
                kvikio_default: None,
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// Whether the files of each block device get a thread pool of their own. Affects files opened afterwards.
            ThreadPoolPerBlockDevice thread_pool_per_block_device: bool {
                variables: &["KVIK_THREAD_POOL_PER_BLOCK_DEVICE", "KVIKIO_THREAD_POOL_PER_BLOCK_DEVICE"],
                default: "off",
                kvikio_default: Some("off"),
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// How often a request is sent before its failure is reported, the first time included.
            HttpMaxAttempts http_max_attempts: usize {
                variables: &["KVIK_HTTP_MAX_ATTEMPTS", "KVIKIO_HTTP_MAX_ATTEMPTS"],
                default: "3",
                kvikio_default: Some("3"),
                unit: "attempts",
                effect: Effect::Now,
                rule: Rule::at_least(1),
            }
            /// How long a server may be silent, before its answer and in it, until the request counts as failed.
            HttpTimeout http_timeout: Duration {
                variables: &["KVIK_HTTP_TIMEOUT", "KVIKIO_HTTP_TIMEOUT"],
                default: "60",
                kvikio_default: Some("60"),
                unit: "seconds",
                effect: Effect::Now,
                rule: Rule::at_least(1),
            }
            /// The HTTP status codes after which a request is sent again; `[]` for none, empty for the default. Where nobody
            /// has said any, 408 and all from 500 on are among them, but 501 and 505.
            HttpStatusCodes http_status_codes: Vec<u16> {
                variables: &["KVIK_HTTP_STATUS_CODES", "KVIKIO_HTTP_STATUS_CODES"],
                default: "429, 500, 502, 503, 504",
                kvikio_default: Some("429, 500, 502, 503, 504"),
                unit: "",
                effect: Effect::Now,
                rule: Rule::between(100, 999).or_empty(default_status_codes),
            }
            /// The file with the certificates, in PEM, that a server must prove itself by, in place of the system's; empty for
            /// none.
            CaBundle ca_bundle: Option<PathBuf> {
                variables: &["KVIK_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "AWS_CA_BUNDLE"],
                default: "",
                kvikio_default: None,
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// The folder with such files, which count beside `ca_bundle`; several with a colon between them; empty for none.
            CaDirectory ca_directory: Option<PathBuf> {
                variables: &["KVIK_CA_DIRECTORY", "SSL_CERT_DIR"],
                default: "",
                kvikio_default: None,
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// The proxy for `http` URLs: `http://[NAME[:PASSWORD]@]HOST[:PORT]`, or by `https`; empty for `all_proxy`. `HTTP_PROXY`
            /// in capitals does not count, as with curl: whoever sends a request to a CGI script sets it.
            HttpProxy http_proxy: Option<ProxyUrl> {
                variables: &["KVIK_HTTP_PROXY", "http_proxy"],
                default: "",
                kvikio_default: None,
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// The proxy for `https` URLs, which connects us through to the server; empty for `all_proxy`.
            HttpsProxy https_proxy: Option<ProxyUrl> {
                variables: &["KVIK_HTTPS_PROXY", "https_proxy", "HTTPS_PROXY"],
                default: "",
                kvikio_default: None,
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// The proxy for all URLs that none of the other two is for; empty for none.
            AllProxy all_proxy: Option<ProxyUrl> {
                variables: &["KVIK_ALL_PROXY", "all_proxy", "ALL_PROXY"],
                default: "",
                kvikio_default: None,
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// The hosts that are asked without a proxy, with commas between them: `example.org` with all names below it, an
            /// address, a network such as `10.0.0.0/8`, each with `:PORT` for that port alone; `*` for all. This machine and
            /// addresses of the link (`localhost`, `127.0.0.0/8`, `::1`, `169.254.0.0/16`, `fe80::/10`) never have one.
            NoProxy no_proxy: Option<String> {
                variables: &["KVIK_NO_PROXY", "no_proxy", "NO_PROXY"],
                default: "",
                kvikio_default: None,
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// Which machinery of KvikIO's fetches remote ranges. kvik has one, whatever is said here: few threads, and many
            /// requests on each.
            RemoteIoBackend remote_io_backend: RemoteIoBackend {
                variables: &["KVIK_REMOTE_IO_BACKEND", "KVIKIO_REMOTE_IO_BACKEND"],
                default: "easy_threadpool",
                kvikio_default: Some("easy_threadpool"),
                unit: "",
                effect: Effect::Stored,
                rule: Rule::any(),
            }
            /// How many event loops the `multi_poll` backend of KvikIO runs. kvik has a thread for each core, and no more than 8.
            RemoteIoNumReactors remote_io_num_reactors: usize {
                variables: &["KVIK_REMOTE_IO_NUM_REACTORS", "KVIKIO_REMOTE_IO_NUM_REACTORS"],
                default: "1",
                kvikio_default: Some("1"),
                unit: "event loops",
                effect: Effect::Stored,
                rule: Rule::between(1, 32_768),
            }
            /// Whether the `multi_poll` backend of KvikIO gives each chunk or each whole read to the next event loop. In kvik any
            /// thread that is free takes the next chunk.
            RemoteIoReactorDispatch remote_io_reactor_dispatch: RemoteReactorDispatch {
                variables: &["KVIK_REMOTE_IO_REACTOR_DISPATCH", "KVIKIO_REMOTE_IO_REACTOR_DISPATCH"],
                default: "per_chunk",
                kvikio_default: Some("per_chunk"),
                unit: "",
                effect: Effect::Stored,
                rule: Rule::any(),
            }
            /// The most requests that the handle of one remote object, all its clones together, has in flight; 0 is no limit.
            RemoteIoMaxConcurrentRequests remote_io_max_concurrent_requests: usize {
                variables: &["KVIK_REMOTE_IO_MAX_CONCURRENT_REQUESTS", "KVIKIO_REMOTE_IO_MAX_CONCURRENT_REQUESTS"],
                default: "256",
                kvikio_default: Some("256"),
                unit: "requests",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// Whether requests and replies are logged in detail, without secrets.
            RemoteVerbose remote_verbose: bool {
                variables: &["KVIK_REMOTE_VERBOSE", "KVIKIO_REMOTE_VERBOSE"],
                default: "off",
                kvikio_default: Some("off"),
                unit: "",
                effect: Effect::Planned,
                rule: Rule::any(),
            }
            /// The user name sent to WebHDFS where the URL names none; empty for none.
            WebhdfsUsername webhdfs_username: Option<String> {
                variables: &["KVIK_WEBHDFS_USERNAME", "KVIKIO_WEBHDFS_USERNAME"],
                default: "",
                kvikio_default: Some(""),
                unit: "",
                effect: Effect::Now,
                rule: Rule::any(),
            }
            /// What the `kvik` command logs, to `log_file` or to stderr: this level and all more serious ones. In a program
            /// of your own, the `tracing` subscriber that it installs decides.
            LogLevel log_level: LogLevel {
                variables: &["KVIK_LOG_LEVEL", "KVIKIO_LOG_LEVEL"],
                default: "off",
                kvikio_default: Some("off"),
                unit: "",
                effect: Effect::CommandOnly,
                rule: Rule::any(),
            }
            /// The file that receives the log of the `kvik` command, at its end (KvikIO empties it first); empty for
            /// stderr. In a program of your own, the `tracing` subscriber that it installs decides.
            LogFile log_file: Option<PathBuf> {
                variables: &["KVIK_LOG_FILE", "KVIKIO_LOG_FILE"],
                default: "",
                kvikio_default: Some(""),
                unit: "",
                effect: Effect::CommandOnly,
                rule: Rule::any(),
            }
        }
    };
}
pub(crate) use settings;

/// What the table says about one setting.
pub(crate) struct Row {
    pub(crate) variables: &'static [&'static str],
    pub(crate) default: &'static str,
    pub(crate) kvikio_default: Option<&'static str>,
    pub(crate) unit: &'static str,
    pub(crate) effect: Effect,
    pub(crate) rule: Rule,
}

/// Who acts on a setting in this version. Every setting is read and checked, so that what is said early is right later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// The library and the command act on it.
    Now,
    /// The command acts on it; the library leaves it to the program.
    CommandOnly,
    /// Nobody acts on it yet: the part it belongs to is planned.
    Planned,
    /// Nobody acts on it, nor will: it turns a part of KvikIO's that kvik has no counterpart of. Programs may go on saying it.
    Stored,
}

impl Effect {
    /// One word: `now`, `command`, `planned` or `stored`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Effect::Now => "now",
            Effect::CommandOnly => "command",
            Effect::Planned => "planned",
            Effect::Stored => "stored",
        }
    }

    /// What the word means, as a part of a sentence.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Effect::Now => "the library and the `kvik` command act on it",
            Effect::CommandOnly => "the `kvik` command acts on it, the library does not",
            Effect::Planned => {
                "nothing acts on it in this version: it is read and checked, and its part is planned"
            }
            Effect::Stored => {
                "nothing acts on it: it is read, checked and kept for programs that set it for KvikIO, and kvik has no such part"
            }
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// What the macro below adds to a [`Row`].
struct Entry {
    name: &'static str,
    sentence: &'static str,
    row: Row,
    expected: fn(&Rule) -> String,
    parses: fn(&OsStr, &Rule) -> bool,
    shown: fn(&OsStr) -> String,
    is_text: bool,
}

macro_rules! define_keys {
    ($($(#[doc = $doc:literal])+ $key:ident $name:ident: $kind:ty { $($row:tt)* })*) => {
        /// One setting. See the [crate documentation](crate) for how its value is found.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Key {
            $($(#[doc = $doc])+ $key,)*
        }

        impl Key {
            /// All settings, in the order of the documentation.
            pub const ALL: &[Key] = &[$(Key::$key),*];

            fn entry(self) -> &'static Entry {
                match self {
                    $(Key::$key => {
                        static ENTRY: Entry = Entry {
                            name: stringify!($name),
                            sentence: concat!($($doc),+),
                            row: Row { $($row)* },
                            expected: <$kind as Setting>::expected,
                            parses: |text, rule| <$kind as Setting>::parse(text, rule).is_some(),
                            shown: <$kind as Setting>::shown,
                            is_text: <$kind as Setting>::IS_TEXT,
                        };
                        &ENTRY
                    })*
                }
            }
        }
    };
}
settings!(define_keys);

impl Key {
    /// The name used in the settings file, in Python and by the command: `num_threads`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// The key with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Key> {
        Key::ALL.iter().copied().find(|key| key.name() == name)
    }

    /// The environment variables that say this setting, in the order in which they are looked at.
    #[must_use]
    pub fn variables(self) -> &'static [&'static str] {
        self.entry().row.variables
    }

    /// Our default, in a spelling that a source could use as well.
    #[must_use]
    pub fn default(self) -> &'static str {
        self.entry().row.default
    }

    /// KvikIO's default; `None` where KvikIO has no such setting.
    #[must_use]
    pub fn kvikio_default(self) -> Option<&'static str> {
        self.entry().row.kvikio_default
    }

    /// What a number counts: `bytes`, `seconds`, `threads`, ...; empty for words and texts.
    #[must_use]
    pub fn unit(self) -> &'static str {
        self.entry().row.unit
    }

    /// Whether this version acts on the setting.
    #[must_use]
    pub fn effect(self) -> Effect {
        self.entry().row.effect
    }

    /// What the setting does, in Markdown.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        self.entry().sentence.trim_start()
    }

    /// Which spellings are values, for error messages and documentation: `a whole number of at least 1`.
    #[must_use]
    pub fn expected(self) -> String {
        (self.entry().expected)(self.rule())
    }

    pub(crate) fn rule(self) -> &'static Rule {
        &self.entry().row.rule
    }

    /// Whether the setting is a text, for which any other type of a settings file is a mistake.
    pub(crate) fn is_text(self) -> bool {
        self.entry().is_text
    }

    /// What may be shown of a text that was said of this setting, whether or not it is a value.
    pub(crate) fn shown(self, text: &OsStr) -> String {
        (self.entry().shown)(text)
    }

    /// Whether `text` is a value of this setting.
    pub(crate) fn parses(self, text: &OsStr) -> bool {
        (self.entry().parses)(text, self.rule())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

fn default_status_codes() -> &'static str {
    Key::HttpStatusCodes.default()
}
