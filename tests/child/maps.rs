//! Maps of files that change under them.

use std::fs::OpenOptions;

use kvik::{DeviceBuffer, ErrorKind, MmapHandle, ReadPiece};
use kvik_tests::pattern::{UNTOUCHED, assert_all};

/// `map-cut-short PATH`: 8 MiB of the byte 7 are mapped and cut to a page; says how reads of what is gone end.
pub(crate) fn cut_short(args: &[String]) {
    let map = MmapHandle::open(&args[0]).unwrap();
    let file = OpenOptions::new().write(true).open(&args[0]).unwrap();
    file.set_len(4096).unwrap();
    let mut bytes = vec![UNTOUCHED; 1 << 20];
    let error = map.read_at(&mut bytes, 6 << 20).unwrap_err();
    println!("host: {:?}", error.kind());
    assert!(
        error.to_string().contains("cut short under its map"),
        "{error}"
    );
    assert_all(&bytes, UNTOUCHED);
    let mut buffer = DeviceBuffer::new(0, 1 << 20).unwrap();
    let error = map.read_at(&mut buffer, 6 << 20).unwrap_err();
    println!("device: {:?}", error.kind());
    let mut left = [UNTOUCHED; 4096];
    let mut pieces = [
        ReadPiece::new(0, &mut left[..]),
        ReadPiece::new(6 << 20, &mut bytes[..]),
    ];
    println!(
        "list: {:?}",
        map.read_ranges(&mut pieces).unwrap_err().kind()
    );
    println!("what is left: {}", map.read_at(&mut left, 0).unwrap());
    assert_all(&left, 7);
    // The system shows zeros behind the end in the last page, and no fault says that they are none of the file's.
    file.set_len(1000).unwrap();
    let error = map.read_at(&mut left, 0).unwrap_err();
    println!("within the last page: {:?}", error.kind());
    assert_eq!((error.kind(), error.done()), (ErrorKind::Changed, 1000));
    assert_all(&left[..1000], 7);
}
