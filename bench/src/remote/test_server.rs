//! A server for the tests of this crate: ranges of one text of bytes, on connections that are kept.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// Serves `bytes` at any path until the process ends; a range that begins with `wrong` comes with a bit turned.
#[expect(
    clippy::disallowed_methods,
    reason = "a server of a test, beside the client that it is for"
)]
pub(crate) fn serve(bytes: Vec<u8>, wrong: Option<u64>) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("bound");
    let bytes = Arc::new(bytes);
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let bytes = Arc::clone(&bytes);
            // Whoever reads closes its connections by ending.
            std::thread::spawn(move || answer(socket, &bytes, wrong));
        }
    });
    address
}

fn answer(mut socket: TcpStream, bytes: &[u8], wrong: Option<u64>) -> Option<()> {
    let mut asks = BufReader::new(socket.try_clone().ok()?);
    loop {
        let mut range = None;
        loop {
            let mut line = String::new();
            if asks.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if line == "\r\n" {
                break;
            }
            let (name, value) = line.split_once(':').unwrap_or_default();
            if name.eq_ignore_ascii_case("range") {
                let (first, last) = value.trim().strip_prefix("bytes=")?.split_once('-')?;
                range = Some((first.parse::<usize>().ok()?, last.parse::<usize>().ok()?));
            }
        }
        let (first, last) = range?;
        let last = last.min(bytes.len() - 1);
        let mut body = bytes[first..=last].to_vec();
        if wrong == Some(first as u64) {
            body[0] ^= 1;
        }
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {first}-{last}/{}\r\nContent-Length: {}\r\nETag: \"1\"\r\n\r\n",
            bytes.len(),
            body.len()
        );
        socket.write_all(head.as_bytes()).ok()?;
        socket.write_all(&body).ok()?;
    }
}
