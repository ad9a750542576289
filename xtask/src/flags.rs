//! What `cargo xtask` can be asked for.

use clap::{Parser, Subcommand, ValueEnum};

use crate::deep::FUZZED;

/// Builds, checks, tests, benches and releases kvik.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Install what a new Debian 12 machine lacks (as root), or say what to install
    Setup,
    /// Everything a change must pass: setup, tidy, fmt, clippy, doc, test, servers, loom, api; each timed, stops at the first failure
    Ci,
    /// Run one group of tests and say how many ran
    Test {
        #[arg(value_enum, default_value_t = Group::Host)]
        group: Group,
    },
    /// Real servers on this machine, for the tests of remote reads: nginx, an S3 server, HDFS, a proxy
    Servers {
        #[arg(value_enum)]
        what: Servers,
    },
    /// Check what no compiler checks: arrows between crates, unsafe code, promises and their tests, licences, generated files
    Tidy,
    /// Write the generated files
    Codegen {
        #[arg(value_enum, default_value_t = Written::Pages)]
        what: Written,
        /// Write nothing; fail when a file is not current
        #[arg(long)]
        check: bool,
    },
    /// Build, test and document each crate alone, with no feature, each feature and all of them (a release step)
    Features {
        /// Only this package
        #[arg(long)]
        package: Option<String>,
    },
    /// Run the loom models of the pool and of pending transfers
    Loom {
        /// Only models whose name contains this
        filter: Option<String>,
    },
    /// Give random inputs to what reads texts of strangers: URLs, refusals of servers, keys (on x86-64; builds for a minute)
    Fuzz {
        /// Only this target
        #[arg(value_parser = FUZZED)]
        target: Option<String>,
        /// How long each is fuzzed
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Write the public interface of each library crate to docs/api/
    Api {
        /// Write nothing; fail when a text is not current
        #[arg(long)]
        check: bool,
    },
    /// Run `kvik bench` from a release build, with what is given; `bench file --against-kvikio` installs KvikIO and fio
    /// and measures them in turn, `bench mmap --against-kvikio` KvikIO's maps, `bench remote --against-kvikio --against-obstore` KvikIO, obstore and nginx
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Build all that runs on a machine with a GPU into target/gpu-bundle, with a run.sh that needs no toolchain
    GpuBundle {
        /// Leave out the wheels of KvikIO
        #[arg(long)]
        no_rivals: bool,
    },
    /// Build the book with mdbook, which is installed where it is missing
    Book,
    /// Run the slow checks that come before a release
    Release {
        /// Check only; without it, the command says what the person who releases does by hand
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Group {
    /// Every test that needs no GPU, no server and no long run, and every example in the documentation
    Host,
    /// The tests against real servers, which are started for them and ended afterwards unless they were up before
    Servers,
    /// The long runs of tests/stress, in release mode
    Stress,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Servers {
    /// Fetch what is missing and start all of them, unless they answer already
    Up,
    /// End what `up` started
    Down,
    /// Ask each of them whether it answers
    Status,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Written {
    /// What is made from the sources alone: the page of settings
    Pages,
    /// The bindings of kvik-sys; fetches the vendor's headers and builds bindgen, which takes a minute
    Bindings,
}
