//! tinyproxy: a proxy for plain HTTP and, by CONNECT, for anything on this machine.

use std::process::Command;

use super::group::{Group, Starting};
use super::place::{self, Place, text};
use super::ports::Ports;
use super::state::Server;
use super::{fetch, http};
use crate::process::Done;

pub(super) fn start(place: &Place, ports: &mut Ports) -> Done<Starting> {
    let port = ports.next()?;
    let folder = place.run("proxy");
    place::make(&folder)?;
    let file = folder.join("tinyproxy.conf");
    // Its log, on its standard output, has a line for each request.
    let config = format!(
        "Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 60\nMaxClients 200\nLogLevel Connect\n"
    );
    place::write(&file, &config)?;
    let mut command = Command::new(fetch::tinyproxy(&place.fetched()));
    command.args(["-d", "-c"]).arg(&file);
    let group = Group::start(place, "proxy", command)?;
    let server = Server::new("proxy", port, format!("http://127.0.0.1:{port}/"))
        .with("log", text(&place.log("proxy"))?);
    Ok(Starting::new(vec![group], vec![server]))
}

/// Its own page, by which it says that it is there.
pub(super) fn check(server: &Server) -> Done<String> {
    http::ask(server.address(), "GET", "http://tinyproxy.stats/")?.expect(200)
}
