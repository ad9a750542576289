//! The plain clients that are the limits: reqwest with its chunks copied into place, and sockets that are read from directly.

mod client;
mod socket;
mod trust;

pub(super) use client::{ClientLoop, one_client};
pub(super) use socket::SocketLoop;

use std::sync::{Mutex, PoisonError};

/// A piece of the object and where it goes.
type Piece<'t> = (u64, &'t mut [u8]);

/// Pieces that several connections take from, one by one.
struct Queue<'t>(Mutex<std::vec::IntoIter<Piece<'t>>>);

impl<'t> Queue<'t> {
    /// Each `size` bytes of `target` at the offset of the same number, in parts of `chunk` bytes at most.
    fn new(target: &'t mut [u8], offsets: &[u64], size: usize, chunk: usize) -> Self {
        let mut pieces = Vec::new();
        for (&offset, whole) in offsets.iter().zip(target.chunks_mut(size)) {
            let starts = (offset..).step_by(chunk);
            pieces.extend(starts.zip(whole.chunks_mut(chunk)));
        }
        Self(Mutex::new(pieces.into_iter()))
    }

    fn next(&self) -> Option<Piece<'t>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}

/// The value of the field `Range` for so many bytes.
fn range(offset: u64, len: usize) -> String {
    format!("bytes={offset}-{}", offset + len as u64 - 1)
}

/// A chunk that is large enough for a request to cost nothing beside it.
const CHUNK: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::reader::Reader;
    use crate::remote::test_server::serve;

    #[test]
    fn a_queue_hands_out_every_byte_once_and_knows_where_it_lies() {
        let mut target = [0; 25];
        let queue = Queue::new(&mut target, &[100, 500, 0], 10, 4);
        let mut seen = Vec::new();
        while let Some((offset, piece)) = queue.next() {
            seen.push((offset, piece.len()));
        }
        let wanted = [
            (100, 4),
            (104, 4),
            (108, 2),
            (500, 4),
            (504, 4),
            (508, 2),
            (0, 4),
            (4, 1),
        ];
        assert_eq!(seen, wanted);
    }

    #[test]
    fn a_range_names_its_last_byte() {
        assert_eq!(range(4096, 4096), "bytes=4096-8191");
    }
    #[test]
    fn both_loops_put_every_byte_where_it_belongs() {
        let mut bytes = vec![0; 300_000];
        crate::pattern::fill(&mut bytes, 3, 0);
        let address = serve(bytes.clone(), None);
        let url = format!("http://{address}/o");
        let client = |threads, lanes| ClientLoop::new(&url, None, threads, lanes).expect("set up");
        let sockets = |count| SocketLoop::connect(address, "/o", None, count).expect("connected");
        let mut loops: [Box<dyn Reader>; 4] = [
            Box::new(client(1, 1)),
            Box::new(client(2, 4)),
            Box::new(sockets(1)),
            Box::new(sockets(3)),
        ];
        let names = loops.each_ref().map(|each| each.contender().name);
        let wanted = [
            "reqwest, 1 thread, 1 ranges each",
            "reqwest, 2 threads, 4 ranges each",
            "sockets, 1 connection",
            "sockets, 3 connections",
        ];
        assert_eq!(names, wanted);
        for each in &mut loops {
            let name = each.contender().name;
            let mut whole = vec![0; bytes.len()];
            each.read(&mut whole, &[0], bytes.len()).expect("read");
            assert!(whole == bytes, "{name}");
            let offsets = [200_000, 0, 299_000, 8, 4096, 1000];
            let mut pieces = vec![0; offsets.len() * 1000];
            each.read(&mut pieces, &offsets, 1000).expect("read");
            for (piece, &offset) in pieces.chunks(1000).zip(&offsets) {
                assert!(piece == &bytes[offset as usize..][..1000], "{name}");
            }
        }
    }
}
