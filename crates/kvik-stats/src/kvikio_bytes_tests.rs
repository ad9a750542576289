//! What once could break: a word at another place, which nobody sees before KvikIO reads it.

use super::NotKvikio;
use crate::names;
use crate::operation::Backend;
use crate::summary::Summary;
use crate::summary::tests::{example, golden_bytes};

#[test]
fn bytes_of_kvikio_are_read_and_written_alike() {
    let bytes = golden_bytes();
    let summary = Summary::from_kvikio_bytes(&bytes).unwrap();
    assert_eq!(summary, example());
    assert_eq!(summary.to_kvikio_bytes().to_vec(), bytes);
    assert_eq!(summary.start_unix_ns(), 1_700_000_000_000_000_100);
    assert_eq!(summary.wall_ns(), 2_000_000_000);
    assert_eq!(summary.backend(Backend::RemoteHttp).errors, 1);
    assert_eq!(summary.counter(&names::HTTP_RETRY_BACKOFF), 250_000_000);
}

// The words are those of KvikIO 26.10, behind the place in its source that it puts before them.
#[test]
fn what_is_no_summary_of_kvikio_is_refused_in_its_words() {
    let good = golden_bytes();
    let with = |place: usize, bytes: &[u8]| {
        let mut bad = good.clone();
        bad[place..place + bytes.len()].copy_from_slice(bytes);
        bad
    };
    let longer: Vec<u8> = good.iter().copied().chain([0]).collect();
    let length = "not a serialized kvikio::statistics::Summary: wrong length";
    for (bytes, words) in [
        (Vec::new(), length),
        (good[..351].to_vec(), length),
        (longer, length),
        (
            with(0, b"XXXX"),
            "not a serialized kvikio::statistics::Summary: wrong magic",
        ),
        (
            with(4, &3u32.to_ne_bytes()),
            "serialized kvikio::statistics::Summary from a different build of KvikIO, version 3 of 336 bytes against version 2 of 336",
        ),
        (
            with(8, &337u32.to_ne_bytes()),
            "serialized kvikio::statistics::Summary from a different build of KvikIO, version 2 of 337 bytes against version 2 of 336",
        ),
        (
            with(12, &0x0403_0201u32.to_ne_bytes()),
            "serialized kvikio::statistics::Summary written on a machine of a different byte order, which this format does not translate",
        ),
    ] {
        let error = Summary::from_kvikio_bytes(&bytes).unwrap_err();
        assert_eq!(error.to_string(), words);
    }
    for place in [16 + 8 * 8, 352 - 8] {
        let bad = with(place, &(-1i64).to_ne_bytes());
        let error = Summary::from_kvikio_bytes(&bad).unwrap_err();
        assert_eq!(error, NotKvikio::Contradiction);
    }
}
