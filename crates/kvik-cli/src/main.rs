//! The `kvik` command; everything is in the library, so that tests and other programs can call it.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    kvik_cli::run(std::env::args_os())
}
