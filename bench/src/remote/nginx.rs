//! nginx over the data file: one process, started for the run and ended with it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::machine;
use crate::remote::door::{BUCKET, KEY};
use crate::trouble::{Doing, Outcome, Trouble};

pub(crate) struct Nginx {
    child: Child,
    pub(crate) plain: SocketAddr,
    pub(crate) secure: SocketAddr,
    /// The certificate of the authority that the one of the server is by.
    pub(crate) authority: PathBuf,
}

impl Nginx {
    /// Serves `data` from now on. What it needs beside that goes into `folder`.
    pub(super) fn start(program: &Path, folder: &Path, data: &Path) -> Outcome<Self> {
        let folder = folder.join("nginx");
        std::fs::create_dir(&folder).doing("make", &folder)?;
        let authority = certify(&folder)?;
        let (plain, secure) = (free_address()?, free_address()?);
        let config = folder.join("nginx.conf");
        let text = config_text(plain, secure, text_of(&folder)?, text_of(data)?);
        std::fs::write(&config, text).doing("write", &config)?;
        let child = Command::new(program)
            .args(["-e", "stderr", "-p"])
            .arg(&folder)
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .doing("start", program)?;
        let mut nginx = Self {
            child,
            plain,
            secure,
            authority,
        };
        nginx.wait_until_it_listens(program)?;
        Ok(nginx)
    }

    /// What it has cost so far.
    pub(super) fn cpu_seconds(&self) -> f64 {
        machine::cpu_seconds_of_process(self.child.id()).unwrap_or(0.0)
    }

    fn wait_until_it_listens(&mut self, program: &Path) -> Outcome<()> {
        let began = Instant::now();
        loop {
            if TcpStream::connect(self.secure).is_ok() {
                return Ok(());
            }
            let ended = self.child.try_wait().doing("wait for", program)?;
            if ended.is_some() || began.elapsed() > PATIENCE {
                let why = "nginx does not listen; what it said is above";
                return Err(Trouble::Misuse(why.into()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // It is a single process, writes nothing, and nobody waits for a last answer.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A single process, so that its end is the end of it and its CPU seconds are one line of /proc. Connections are kept as
/// long as clients keep them: it is not reconnecting that is measured.
fn config_text(plain: SocketAddr, secure: SocketAddr, folder: &str, data: &str) -> String {
    format!(
        "daemon off;
master_process off;
pid nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  sendfile on;
  keepalive_requests 1000000000;
  keepalive_timeout 3600;
  default_type application/octet-stream;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  ssl_certificate {folder}/server.pem;
  ssl_certificate_key {folder}/server.key;
  ssl_protocols TLSv1.3;
  server {{
    listen {plain};
    listen {secure} ssl;
    location = /{KEY} {{ alias {data}; }}
    location = /{BUCKET}/{KEY} {{ alias {data}; }}
  }}
}}
"
    )
}

/// A path as nginx takes it.
fn text_of(path: &Path) -> Outcome<&str> {
    let odd = ['"', '\\', ' ', ';', '$', '{', '}', '#', '\''];
    path.to_str()
        .filter(|text| !text.contains(odd))
        .ok_or_else(|| {
            let why = "nginx cannot be configured with a path such as";
            Trouble::Misuse(format!("{why} {}; name another folder", path.display()))
        })
}

/// An address that was free a moment ago.
fn free_address() -> Outcome<SocketAddr> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
    free.doing("find a free port of", Path::new("127.0.0.1"))
}

/// An authority and a certificate by it for `localhost`, made for this run by openssl; returns the authority's.
fn certify(folder: &Path) -> Outcome<PathBuf> {
    let config = folder.join("openssl.cnf");
    std::fs::write(&config, OPENSSL).doing("write", &config)?;
    for line in [AUTHORITY, REQUEST, SIGNATURE] {
        let made = Command::new("openssl")
            .args(line.split_whitespace())
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .doing("start", Path::new("openssl"))?;
        if !made.status.success() {
            let said = String::from_utf8_lossy(&made.stderr);
            let why = said.lines().last().unwrap_or_default().to_owned();
            return Err(Trouble::Misuse(format!(
                "openssl makes no certificate: {why}"
            )));
        }
    }
    Ok(folder.join("ca.pem"))
}

const OPENSSL: &str = include_str!("openssl.cnf");
const AUTHORITY: &str = "req -config openssl.cnf -new -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 -x509 -days 30 \
    -extensions authority -subj /CN=kvik-bench-authority -keyout ca.key -out ca.pem";
const REQUEST: &str = "req -config openssl.cnf -new -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256 \
    -subj /CN=kvik-bench-server -keyout server.key -out server.csr";
const SIGNATURE: &str = "x509 -req -in server.csr -out server.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 \
    -extfile openssl.cnf -extensions server";
// It listens within a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_serves_one_file_by_both_addresses_and_nothing_else() {
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let text = config_text(address(81), address(82), "/run/n", "/run/data.bin");
        assert!(text.contains("listen 127.0.0.1:81;") && text.contains("listen 127.0.0.1:82 ssl;"));
        let places: Vec<_> = text
            .lines()
            .filter(|line| line.contains("location"))
            .map(str::trim)
            .collect();
        let wanted = [
            "location = /data.bin { alias /run/data.bin; }",
            "location = /bucket/data.bin { alias /run/data.bin; }",
        ];
        assert_eq!(places, wanted);
        assert!(!text.contains("root "));
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }

    #[test]
    fn a_path_that_would_end_a_directive_is_refused() {
        assert!(text_of(Path::new("/tmp/a-b_c/d.bin")).is_ok());
        for odd in ["/tmp/a b", "/tmp/a;b", "/tmp/$a", "/tmp/a{b"] {
            let error = text_of(Path::new(odd)).expect_err("refused");
            assert!(error.to_string().contains(odd), "{error}");
        }
    }

    #[test]
    fn a_program_that_does_not_listen_is_an_error() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("data.bin");
        let error = Nginx::start(Path::new("false"), folder.path(), &data);
        let error = error.err().expect("nobody listens");
        assert!(error.to_string().contains("does not listen"), "{error}");
    }
}
