//! `kvik serve`: a folder or a file over HTTP, for trying things.

use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use nix::poll::{PollFd, PollFlags, poll};
use serde_json::json;

use crate::failure::{Result, show};
use crate::log::Used;
use crate::output::{Output, Report};
use crate::serve::{Server, Told};
use crate::stop::{Patience, Stop};
use crate::units;

/// Serve the files of a folder, or one file, by HTTP on this machine, for trying things
///
/// A small server of ranges that only reads. Nothing outside of the folder is served, wherever links
/// lead. It knows no users and no TLS: whoever reaches it may read the folder, which from elsewhere
/// is nobody unless --bind says so.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = AFTER)]
pub(crate) struct Flags {
    /// The folder, or one file
    path: PathBuf,
    /// The port; 0 is any that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// The address to listen at; 0.0.0.0 is reached from every network that this machine is in
    #[arg(long, value_name = "ADDR", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind: IpAddr,
    /// Print a line for each request to standard error
    #[arg(short, long)]
    verbose: bool,
    /// End with standard input as well; for a program that starts it, and can be killed
    #[arg(long, hide = true)]
    until_eof: bool,
}

const AFTER: &str = "\
Output:
  The first line of standard output is the URL, printed when the server is ready. What was served is
  told at the end on standard error, with --json as an object there.

Exit codes:
  0 ended by Ctrl-C or SIGTERM, 1 the port is taken, 2 wrong arguments, or neither a folder nor a
  file, 3 it does not exist, 4 permission denied; `kvik --help` has the whole table.

Examples:
  kvik serve data/
  kvik serve data/ --port 8080                # then, elsewhere:
  kvik copy http://127.0.0.1:8080/a.bin copy.bin
  kvik serve data.bin -v";

pub(crate) fn run(flags: &Flags, output: &Output, stop: &Stop) -> Result<Report> {
    // Before anybody is told that it is ready, so that who is told may end it.
    stop.listen("serve", Patience::Ends)?;
    let lines = output.clone();
    let told: Told = Box::new(move |line| lines.line(line));
    let address = SocketAddr::new(flags.bind, flags.port);
    let server = Server::bind(&flags.path, address, flags.verbose.then_some(told))?;
    let begun = Instant::now();
    if !flags.bind.is_loopback() {
        let place = show(&flags.path);
        output.warn(&format!(
            "everybody who reaches {} can read {place}",
            flags.bind
        ));
    }
    let url = server.url();
    output.ready(&url)?;
    while stop.requested().is_none() {
        match flags.until_eof {
            true if ends_within_a_tick(io::stdin()) => break,
            true => {}
            false => thread::sleep(TICK),
        }
    }
    let sent = server.stop();
    stop.settle();
    let report = json!({
        "url": url,
        "requests": sent.requests,
        "bytes": sent.bytes,
        "seconds": begun.elapsed().as_secs_f64(),
    });
    let text = format!("{} requests, {}", sent.requests, units::size(sent.bytes));
    Ok(Report::new(report).remark(text))
}

/// What comes from standard input has no meaning, only its end has.
fn ends_within_a_tick(mut input: io::Stdin) -> bool {
    let mut polled = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    match poll(&mut polled, TICK.as_millis() as u16) {
        Ok(0) | Err(_) => false,
        Ok(_) => !matches!(input.read(&mut [0; 64]), Ok(1..)),
    }
}

/// What a log must not go into: a file that is served would grow by each request for it.
pub(crate) fn used(flags: &Flags) -> Used {
    Used {
        paths: vec![flags.path.clone()],
        ..Used::default()
    }
}

// How often it looks whether it is to end.
const TICK: Duration = Duration::from_millis(20);
