//! The process that tests start when the process itself is their subject: `kvik-tests-child SCENARIO ARGUMENTS`.
//!
//! It ends with 0 when all is as it should be, and by a panic with its message when it is not.

// A panic here is the failure of the test that started this process.
#![allow(clippy::unwrap_used)]
#![expect(
    clippy::disallowed_methods,
    reason = "who uses kvik has threads of their own"
)]
#![forbid(unsafe_code)]

mod cold;
mod cudarc;
mod devices;
mod direct;
mod exit;
mod fakes;
mod forks;
mod growth;
mod limits;
mod maps;
mod ranges;
mod remote;
mod settings;
mod terminals;
mod transfers;
mod uring;

fn main() {
    // Whatever hangs ends by a signal, with this process and not with the tests.
    nix::unistd::alarm::set(120);
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (scenario, args) = args.split_first().expect("the name of a scenario");
    match scenario.as_str() {
        "read" => transfers::read(args),
        "write" => transfers::write(args),
        "late-pieces" => transfers::late_pieces(args),
        "late-pieces-pending" => transfers::late_pieces_pending(args),
        "as-nobody" => transfers::as_nobody(args),
        "bytes-by-backend" => transfers::bytes_by_backend(args),
        "totals" => transfers::totals(args),
        "every-call" => transfers::every_call(args),
        "cold-read" => cold::read(args),
        "cold-rounds" => cold::rounds(args),
        "cold-as-nobody" => cold::as_nobody(args),
        "cudarc" => cudarc::run(args),
        "direct-open" => direct::open(args),
        "direct-clones" => direct::clones(args),
        "remote-read" => remote::read(args),
        "remote-by-default" => remote::by_default(args),
        "remote-tried" => remote::tried(args),
        "remote-facts" => remote::facts(args),
        "remote-open" => remote::open(args),
        "command" => remote::command(args),
        "remote-forked" => remote::forks(args),
        "remote-opening-forked" => remote::opening_forks(args),
        "read-ranges" => ranges::read(args),
        "calls-of-ranges" => ranges::calls(args),
        "late-pieces-device" => devices::late_pieces(args),
        "direct-device" => devices::direct(args),
        "exit-device" => devices::exit(args),
        "on-stream-error" => devices::on_stream_error(args),
        "map-cut-short" => maps::cut_short(args),
        "lease" => limits::lease(args),
        "few-descriptors" => limits::few_descriptors(args),
        "no-threads" => limits::no_threads(args),
        "exit" => exit::run(args),
        "fakes" => fakes::run(),
        "forked-child-works" => forks::child_works(args),
        "forked-pending" => forks::pending(),
        "fork-in-full-flight" => forks::in_full_flight(args),
        "fork-at-the-first-cold-read" => forks::at_the_first_cold_read(args),
        "growth" => growth::run(args),
        "settings-second-component" => settings::second_component(args),
        "settings-late-environment" => settings::late_environment(),
        "settings-bad-value" => settings::bad_value(args),
        "settings-bad-value-at-opening" => settings::bad_value_at_opening(args),
        "settings-seen" => settings::seen(args),
        "terminals" => terminals::run(args),
        "uring-forbidden" => uring::forbidden(args),
        "uring-forbidden-later" => uring::forbidden_later(args),
        "uring-without-locked-memory" => uring::without_locked_memory(args),
        "uring-few-descriptors" => uring::few_descriptors(args),
        "uring-forks" => uring::forks(args),
        other => panic!("no scenario `{other}`"),
    }
}
