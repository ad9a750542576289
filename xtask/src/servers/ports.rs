//! Free ports of the loopback interface.

use std::net::{Ipv4Addr, TcpListener};
use std::process;

use crate::process::Done;

/// Ports that are held until the server that gets one starts.
///
/// They lie below those that Linux gives to whoever asks for any (from 32768 on), so that in the moment between giving one
/// up and its server's start, no connection of another program takes it.
pub(super) struct Ports(Vec<TcpListener>);

impl Ports {
    pub(super) fn take() -> Done<Self> {
        // Two checkouts that start at the same time begin at different places.
        let first = (process::id() % u32::from(LAST - FIRST)) as u16;
        let held: Vec<TcpListener> = (0..LAST - FIRST)
            .map(|step| FIRST + (first + step) % (LAST - FIRST))
            .filter_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok())
            .take(COUNT)
            .collect();
        if held.len() < COUNT {
            return Err(format!("no {COUNT} ports are free below {LAST}"));
        }
        Ok(Self(held))
    }

    /// Gives up one port, for a server that starts now.
    pub(super) fn next(&mut self) -> Done<u16> {
        let listener = self.0.pop().ok_or("more ports than were taken")?;
        let address = listener.local_addr().map_err(|why| why.to_string())?;
        Ok(address.port())
    }
}

const COUNT: usize = 8;
const FIRST: u16 = 20_000;
const LAST: u16 = 30_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_can_be_listened_on() {
        let mut ports = Ports::take().unwrap();
        let mut seen = Vec::new();
        for _ in 0..COUNT {
            let port = ports.next().unwrap();
            assert!((FIRST..LAST).contains(&port) && !seen.contains(&port));
            drop(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap());
            seen.push(port);
        }
        assert!(ports.next().is_err());
    }
}
