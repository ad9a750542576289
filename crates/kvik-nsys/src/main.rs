//! The plugin that Nsight Systems starts; everything is in the library, so that tests can call it.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    kvik_nsys::run(std::env::args_os())
}
