//! Files that are mapped. Once a zero-length read at the end, and pieces at odd offsets, were refused; a file that another
//! process cut short ended the reader.

mod cut_short;

use std::fs::{self, File};
use std::os::fd::AsFd;

use kvik::{
    Advice, ByteSize, Config, ErrorKind, Layer, MmapHandle, ReadAt, ReadAtExt, ReadOptions,
    ReadPiece,
};
use kvik_tests::conformance::{Maps, exam};
use kvik_tests::need;
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

#[test]
fn mapped_files_pass_the_exam() {
    exam(&Maps::in_folder(tempfile::tempdir().unwrap().path()));
}

#[test]
fn mapped_files_read_to_a_device_pass_the_exam() {
    let folder = tempfile::tempdir().unwrap();
    exam(&Maps::in_folder(folder.path()).to_device(need::gpu()));
}

/// kvikio#740, kvikio#781: pieces at odd offsets, reads of nothing, and reads up to the very end were refused.
#[test]
fn m2_all_that_lies_in_the_map_is_read_and_all_else_is_refused_with_both_ranges() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "twenty thousand", 1, 20_000);
    let truth = pattern(1, 0, 20_000);
    let (from, to) = (4097, 4097 + 8191);
    for (task_size, slab) in [(1000, 4 << 20), (4 << 20, 4096)] {
        let settings = Layer::new()
            .task_size(ByteSize::new(task_size))
            .bounce_buffer_size(ByteSize::new(slab));
        let config = Config::resolve([settings]).unwrap();
        let options = MmapHandle::options().offset(from).len(to - from);
        let map = options.config(&config).open(&path).unwrap();
        assert_eq!((map.map_offset(), map.map_len()), (from, to - from));
        assert_eq!(map.file_len().unwrap(), 20_000);
        for offset in [
            0,
            4096,
            4097,
            4098,
            8191,
            8192,
            to - 1,
            to,
            to + 1,
            20_000,
            u64::MAX,
        ] {
            for size in [0, 1, 4096, 8190, 8191, 8192, 20_000] {
                let mut target = vec![UNTOUCHED; size];
                let read = map.read_at(&mut target, offset);
                let end = offset.saturating_add(size as u64);
                if size > 0 && (offset < from || end > to) {
                    let error = read.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::Misuse, "{offset} {size}");
                    let said = error.to_string();
                    assert!(said.contains(&format!("{offset}..{end}")), "{said}");
                    assert!(said.contains("4097..12288"), "{said}");
                    assert_all(&target, UNTOUCHED);
                } else {
                    assert_eq!(read.unwrap(), size, "{offset} {size}");
                    let at = offset.min(20_000) as usize;
                    assert_same(&target, &truth[at..at + size]);
                }
            }
        }
    }
}

#[test]
fn a_map_up_to_the_end_of_the_file_is_short_there_as_a_file_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 20_000);
    let map = MmapHandle::options().offset(5000).open(&path).unwrap();
    let mut target = vec![UNTOUCHED; 4000];
    assert_eq!(map.read_at(&mut target, 19_000).unwrap(), 1000);
    assert_same(&target[..1000], &pattern(1, 19_000, 1000));
    assert_all(&target[1000..], UNTOUCHED);
    for offset in [20_000, 20_001, u64::MAX] {
        assert_eq!(map.read_at(&mut target, offset).unwrap(), 0);
    }
    let error = map.read_exact_at(&mut target, 19_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    // What came to it later is not mapped.
    fs::write(&path, pattern(1, 0, 30_000)).unwrap();
    assert_eq!(map.read_at(&mut target, 19_000).unwrap(), 1000);
    assert_eq!(map.file_len().unwrap(), 30_000);
}

#[test]
fn an_empty_file_is_a_map_of_nothing_that_can_be_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "empty", 1, 0);
    let map = MmapHandle::options().offset(7).len(9).open(&path).unwrap();
    assert_eq!((map.map_offset(), map.map_len()), (0, 0));
    let mut target = [UNTOUCHED; 10];
    assert_eq!(map.read_at(&mut target, 0).unwrap(), 0);
    assert_eq!(map.submit_read(vec![UNTOUCHED; 5], 3).wait().unwrap(), 0);
    assert_all(&target, UNTOUCHED);
    assert!(!map.is_closed());
    map.close();
    assert!(map.is_closed());
}

#[test]
fn pieces_that_are_not_in_the_file_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 1000);
    let refused = |offset, len| {
        let options = MmapHandle::options().offset(offset).len(len);
        let error = options.open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        error.to_string()
    };
    assert!(refused(1000, 1).contains("begins at byte 1000, and the file has 1000 bytes"));
    assert!(refused(0, 0).contains("is empty"));
    assert!(refused(1, 1000).contains("reaches beyond the end of the file"));
    assert!(refused(1, u64::MAX).contains("reaches beyond the end of the file"));
    let error = MmapHandle::open(folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IsADirectory);
    let error = MmapHandle::open("/dev/null").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let error = MmapHandle::open(folder.path().join("none")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn a_map_of_a_descriptor_outlives_it_and_its_options_change_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 300_000);
    for advice in [
        Advice::Sequential,
        Advice::Random,
        Advice::WillNeed,
        Advice::HugePage,
    ] {
        let opened = File::open(&path).unwrap();
        let options = MmapHandle::options().advice(advice).populate(true);
        let map = options.open_fd(opened.as_fd()).unwrap();
        drop(opened);
        let bytes = map.read_to_end(0).unwrap();
        assert_same(&bytes, &pattern(1, 0, 300_000));
    }
}

#[test]
fn a_closed_map_is_refused_and_what_was_in_flight_comes_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 8 << 20);
    let map = MmapHandle::open(&path).unwrap();
    let clone = map.clone();
    let options = ReadOptions::new().task_size(ByteSize::new(64 << 10));
    let in_flight = map.submit_read_with(vec![0; 8 << 20], 0, &options);
    clone.close();
    let (count, bytes) = in_flight.finish();
    assert_eq!(count.unwrap(), 8 << 20);
    assert_same(&bytes, &pattern(1, 0, 8 << 20));
    assert!(map.is_closed());
    assert_eq!((map.map_offset(), map.map_len()), (0, 0));
    let error = map.read_at(&mut [0; 1], 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.to_string().contains("the map was closed"), "{error}");
    assert_eq!(map.file_len().unwrap_err().kind(), ErrorKind::Misuse);
    map.close();
}

#[test]
fn one_piece_of_a_list_that_is_not_in_the_map_refuses_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 20_000);
    let map = MmapHandle::options()
        .offset(4096)
        .len(4096)
        .open(&path)
        .unwrap();
    let (mut a, mut b) = ([UNTOUCHED; 100], [UNTOUCHED; 100]);
    let mut pieces = [
        ReadPiece::new(5000, &mut a[..]),
        ReadPiece::new(8150, &mut b[..]),
    ];
    let error = map.read_ranges(&mut pieces).unwrap_err();
    assert_eq!(
        (error.kind(), error.range()),
        (ErrorKind::Misuse, Some(8150..8250))
    );
    assert_all(&a, UNTOUCHED);
    assert_all(&b, UNTOUCHED);
}

#[test]
fn a_map_of_a_piece_is_read_by_whoever_reads_anything_as_an_object_that_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 900_000);
    let map = MmapHandle::options().len(600_000).open(&path).unwrap();
    let object: &dyn ReadAt = &map;
    assert_eq!(object.len().unwrap(), 600_000);
    assert_same(
        &object.read_to_end(1000).unwrap(),
        &pattern(1, 1000, 599_000),
    );
    let mut target = vec![UNTOUCHED; 400_000];
    assert_eq!(
        object.read_at((&mut target[..]).into(), 500_000).unwrap(),
        100_000
    );
    assert_same(&target[..100_000], &pattern(1, 500_000, 100_000));
    assert_all(&target[100_000..], UNTOUCHED);
    let (mut a, mut b) = ([UNTOUCHED; 10], [UNTOUCHED; 10]);
    let mut pieces = [
        ReadPiece::new(599_995, &mut a[..]),
        ReadPiece::new(700_000, &mut b[..]),
    ];
    assert_eq!(object.read_ranges(&mut pieces).unwrap(), [5, 0]);
    assert_same(&a[..5], &pattern(1, 599_995, 5));
    assert_all(&b, UNTOUCHED);
    // Who asks the handle itself is told that the file has more.
    let error = map.read_exact_at(&mut target, 500_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
}

#[test]
fn a_fifo_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).unwrap();
    let error = MmapHandle::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSeekable);
}
