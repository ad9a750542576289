//! An authority of our own and a certificate by it, made for each start, so that nothing secret is kept and nothing expires.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::group::Group;
use super::place::{self, Place};
use super::state::Server;
use crate::process::Done;

const CONFIG: &str = include_str!("../../../bench/src/remote/openssl.cnf");

/// The certificate of the authority, which a client must be told to trust.
pub(super) fn authority(place: &Place) -> PathBuf {
    place.run("tls").join("ca.pem")
}

pub(super) fn certificate(place: &Place) -> PathBuf {
    place.run("tls").join("server.pem")
}

pub(super) fn key(place: &Place) -> PathBuf {
    place.run("tls").join("server.key")
}

pub(super) fn write(place: &Place) -> Done {
    let folder = place.run("tls");
    place::make(&folder)?;
    place::write(&folder.join("openssl.cnf"), CONFIG)?;
    let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    let made = |arguments: &[&str]| {
        let mut command = Command::new("openssl");
        command.args(arguments);
        Group::run(place, "tls", command)
    };
    let request = ["req", "-config", "openssl.cnf", "-new", "-nodes"];
    let authority = ["-x509", "-days", "30", "-extensions", "authority"];
    let names = ["-subj", "/CN=kvik tests: authority"];
    let files = ["-keyout", "ca.key", "-out", "ca.pem"];
    made(&[&request[..], &curve, &authority, &names, &files].concat())?;
    let names = ["-subj", "/CN=kvik tests: server"];
    let files = ["-keyout", "server.key", "-out", "server.csr"];
    made(&[&request[..], &curve, &names, &files].concat())?;
    let sign = ["x509", "-req", "-in", "server.csr", "-out", "server.pem"];
    let by = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"];
    let what = [
        "-days",
        "30",
        "-extfile",
        "openssl.cnf",
        "-extensions",
        "server",
    ];
    made(&[&sign[..], &by, &what].concat())
}

/// Whether a client that trusts our authority and no other is content with the server.
pub(super) fn check(server: &Server) -> Done<String> {
    let protocol = server.fact("protocol");
    let said = Command::new("timeout")
        .args([
            "10",
            "openssl",
            "s_client",
            "-verify_return_error",
            "-CAfile",
        ])
        .arg(server.fact("ca"))
        .args(["-connect", server.address()])
        .args(["-servername", "localhost", "-verify_hostname", "localhost"])
        .args(["-alpn", protocol])
        .stdin(Stdio::null())
        .output()
        .map_err(|why| format!("openssl: {why}"))?;
    let agreed = format!("ALPN protocol: {protocol}");
    let said_so = String::from_utf8_lossy(&said.stdout).contains(&agreed);
    if said.status.success() && said_so {
        return Ok(format!("answers by TLS, {protocol}"));
    }
    let why = String::from_utf8_lossy(&said.stderr);
    Err(format!(
        "no TLS with {protocol} ({}): {}",
        said.status,
        why.lines().last().unwrap_or_default()
    ))
}
