//! What once could break: a byte that was changed on the way and nobody noticed.

use proptest::prelude::*;

use super::{NotSummary, checksum};
use crate::names::{self, COUNTERS};
use crate::operation::Backend;
use crate::summary::Summary;
use crate::summary::tests::example;

#[test]
fn a_summary_comes_back_as_it_was() {
    for summary in [
        example(),
        Summary::from_bytes(&Summary::default().to_bytes()).unwrap(),
    ] {
        let bytes = summary.to_bytes();
        assert_eq!(Summary::from_bytes(&bytes).unwrap(), summary);
        assert_eq!(&bytes[..12], b"kvikstat\x01\0\0\0");
    }
}

#[test]
fn names_fit_their_length() {
    let counters = COUNTERS.iter().map(|counter| counter.metric().name);
    let backends = Backend::ALL.iter().map(|backend| backend.name());
    assert!(
        counters
            .chain(backends)
            .all(|name| name.len() < 256 && name.is_ascii())
    );
    assert!(COUNTERS.len() < 1 << 16);
}

/// The bytes with another checksum, which is right.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 8;
    let sum = checksum(&bytes[..end]);
    bytes[end..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn what_another_version_wrote_is_told_apart() {
    let good = example().to_bytes();
    let mut other = good.clone();
    other[8] = 2;
    assert_eq!(
        Summary::from_bytes(&sealed(other)),
        Err(NotSummary::OtherVersion(2))
    );
    let name = names::HTTP_REQUESTS.metric().name.as_bytes();
    let place = good
        .windows(name.len())
        .position(|found| found == name)
        .unwrap();
    let mut other = good.clone();
    other[place] = b'x';
    let error = Summary::from_bytes(&sealed(other)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a summary of kvik: it has `xttp_requests`, of which nothing is known here"
    );
    // One that has fewer counters: the last goes, with its name.
    let last = COUNTERS.last().unwrap().metric().name.len() + 9;
    let mut other = good.clone();
    // Behind it are the number of distributions, which is none, and the checksum.
    other.drain(good.len() - 10 - last..good.len() - 10);
    let length = (other.len() - 24) as u32;
    other[12..16].copy_from_slice(&length.to_le_bytes());
    let name = Backend::ALL
        .iter()
        .map(|backend| backend.name().len() + 33)
        .sum::<usize>();
    let count = 16 + 13 * 8 + 1 + name;
    let fewer = (COUNTERS.len() - 1) as u16;
    other[count..count + 2].copy_from_slice(&fewer.to_le_bytes());
    assert_eq!(Summary::from_bytes(&sealed(other)).unwrap(), example());
}

proptest! {
    #[test]
    fn a_byte_that_was_changed_is_noticed(place: prop::sample::Index, flip in 1u8..) {
        let mut bytes = example().to_bytes();
        let place = place.index(bytes.len());
        bytes[place] ^= flip;
        prop_assert!(Summary::from_bytes(&bytes).is_err());
    }

    #[test]
    fn a_piece_of_a_summary_is_none(length: prop::sample::Index) {
        let bytes = example().to_bytes();
        prop_assert!(Summary::from_bytes(&bytes[..length.index(bytes.len())]).is_err());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(mut payload in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = b"kvikstat\x01\0\0\0".to_vec();
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.append(&mut payload);
        bytes.extend([0; 8]);
        prop_assert!(Summary::from_bytes(&sealed(bytes)).is_err());
    }
}
