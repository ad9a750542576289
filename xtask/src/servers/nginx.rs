//! nginx: the fixtures by plain HTTP, slowly, by TLS, and by HTTP/2.

use std::process::{Command, Stdio};

use super::group::{Group, Starting};
use super::place::{self, Place, text};
use super::ports::Ports;
use super::state::Server;
use super::{fetch, fixtures, http, tls};
use crate::process::Done;
use crate::setup;

pub(super) fn start(place: &Place, ports: &mut Ports) -> Done<Starting> {
    let program = fetch::nginx(&place.fetched());
    let (plain, secure) = (ports.next()?, ports.next()?);
    let url = format!("http://127.0.0.1:{plain}/");
    let mut servers = vec![
        Server::new("throttled", plain, format!("{url}throttled/")),
        // Whoever writes there has another file served.
        Server::new("http", plain, url).with("folder", text(&fixtures::folder(place))?),
        by_tls(place, "https", secure, "http/1.1")?,
    ];
    let mut listen = vec![format!("{secure} ssl")];
    if has_http2(&program)? {
        let port = ports.next()?;
        listen.push(format!("{port} ssl http2"));
        servers.push(by_tls(place, "http2", port, "h2")?);
    }
    let folder = place.run("nginx");
    place::make(&folder)?;
    let file = folder.join("nginx.conf");
    place::write(&file, &config(place, plain, &listen)?)?;
    let mut command = Command::new(program);
    command
        .args(["-e", "stderr", "-p"])
        .arg(&folder)
        .arg("-c")
        .arg(&file);
    let group = Group::start(place, "nginx", command)?;
    Ok(Starting::new(vec![group], servers))
}

fn by_tls(place: &Place, name: &str, port: u16, protocol: &str) -> Done<Server> {
    let server = Server::new(name, port, format!("https://localhost:{port}/"));
    Ok(server
        .with("ca", text(&tls::authority(place))?)
        .with("protocol", protocol))
}

/// The whole configuration; what it does not name lies in the server's folder.
fn config(place: &Place, plain: u16, secure: &[String]) -> Done<String> {
    // Started by root, workers would be a user who may not read the target folder.
    let user = if setup::is_root()? { "user root;" } else { "" };
    let root = fixtures::folder(place);
    let (root, certificate, key) = (text(&root)?, &tls::certificate(place), &tls::key(place));
    let (certificate, key) = (text(certificate)?, text(key)?);
    let secure: String = secure
        .iter()
        .map(|listen| format!("  server {{ listen 127.0.0.1:{listen}; root {root}; }}\n"))
        .collect();
    Ok(format!(
        "daemon off;
{user}
worker_processes 2;
pid nginx.pid;
error_log stderr warn;
events {{ worker_connections 512; }}
http {{
  access_log off;
  sendfile on;
  default_type application/octet-stream;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  ssl_certificate {certificate};
  ssl_certificate_key {key};
  ssl_protocols TLSv1.2 TLSv1.3;
  server {{
    listen 127.0.0.1:{plain};
    root {root};
    location /throttled/ {{ alias {root}/; limit_rate {THROTTLED}; }}
  }}
{secure}}}
"
    ))
}

/// Bytes that each connection of the throttled place gets in a second.
const THROTTLED: &str = "16m";

fn has_http2(program: &std::path::Path) -> Done<bool> {
    let said = Command::new(program)
        .arg("-V")
        .stdin(Stdio::null())
        .output()
        .map_err(|why| format!("{}: {why}", program.display()))?;
    // It says what it was built with on its stream for errors.
    Ok(String::from_utf8_lossy(&said.stderr).contains("--with-http_v2_module"))
}

pub(super) fn check(server: &Server) -> Done<String> {
    let (_, path) = server
        .url()
        .split_once(server.address())
        .unwrap_or_default();
    http::ask(server.address(), "HEAD", &format!("{path}one"))?.expect(200)
}
