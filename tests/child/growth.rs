//! A hundred thousand operations of all kinds: neither memory nor descriptors grow.

use std::path::Path;

use kvik::{ByteSize, ErrorKind, FileHandle, ReadOptions};
use kvik_tests::pattern::{assert_same, pattern};

/// `growth FOLDER`
pub(crate) fn run(args: &[String]) {
    let folder = Path::new(&args[0]);
    let path = folder.join("growth");
    let content = pattern(7, 0, 1 << 20);
    std::fs::write(&path, &content).unwrap();
    let file = FileHandle::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let mut target = vec![0; 1 << 20];
    let mut operations =
        |count: usize| (0..count).for_each(|n| operation(n, &file, &path, &content, &mut target));

    // Threads, arenas and buffers that are kept on purpose are there after this.
    operations(20_000);
    let (memory, descriptors) = (resident(), open_descriptors());
    operations(100_000);
    assert_eq!(open_descriptors(), descriptors, "descriptors");
    // A leak of 64 bytes in every operation would be 6 MB.
    let grown = resident().saturating_sub(memory);
    assert!(
        grown < 4 << 20,
        "the resident memory grew by {grown} bytes from {memory}"
    );
}

fn operation(n: usize, file: &FileHandle, path: &Path, content: &[u8], target: &mut [u8]) {
    let at = n * 4097 % (1 << 19);
    let cut = ReadOptions::new()
        .num_threads(3)
        .task_size(ByteSize::kib(4));
    match n % 64 {
        0 => {
            assert_eq!(
                file.read_at_with(&mut target[..], 0, &cut).unwrap(),
                1 << 20
            );
            assert_same(target, content);
        }
        1..8 => {
            let pending = file.submit_read_with(vec![0; 20_000], at as u64, &cut);
            assert_eq!(pending.wait().unwrap(), 20_000);
            assert_same(&pending.into_buf(), &content[at..][..20_000]);
        }
        8..12 => file
            .submit_read_with(vec![0; 20_000], at as u64, &cut)
            .cancel(),
        12..16 => drop(file.submit_read(vec![0; 3], at as u64)),
        16..20 => {
            let error = file
                .read_exact_at(&mut target[..100], (1 << 20) - 50)
                .unwrap_err();
            assert_eq!((error.kind(), error.done()), (ErrorKind::UnexpectedEof, 50));
        }
        20..24 => {
            let error = file.write_at(&target[..100], u64::MAX - 10).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse);
        }
        24..26 => {
            let error = FileHandle::open(path.with_file_name("missing")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
        }
        26..30 => {
            let other = FileHandle::open(path).unwrap();
            assert_eq!(
                other.write_at(b"x", 0).unwrap_err().kind(),
                ErrorKind::PermissionDenied
            );
        }
        30..34 => file
            .write_all_at(&content[at..][..5000], at as u64)
            .unwrap(),
        34..36 => {
            let pending = file.submit_write_with(content[at..][..9000].to_vec(), at as u64, &cut);
            assert_eq!(pending.wait().unwrap(), 9000);
        }
        _ => {
            assert_eq!(file.read_at(&mut target[..4096], at as u64).unwrap(), 4096);
            assert_same(&target[..4096], &content[at..][..4096]);
        }
    }
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Bytes of memory that are resident and not of a file.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let row = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .unwrap();
    row.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
