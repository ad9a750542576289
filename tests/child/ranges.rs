//! Many ranges in one call, under faults, and the system calls that it makes.

use kvik::stats::{SummaryMonitor, names};
use kvik::{ByteSize, FileHandle, ReadOptions, ReadPiece};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, pattern};

/// `read-ranges PATH COUNT LEN STEP THREADS`: `COUNT` pieces of `LEN` bytes, each `STEP` further on. The file is of the
/// pattern 1.
pub(crate) fn read(args: &[String]) {
    let [path, rest @ ..] = args else {
        panic!("a path and numbers")
    };
    let numbers: Vec<usize> = rest.iter().map(|text| text.parse().unwrap()).collect();
    let &[count, len, step, threads] = &numbers[..] else {
        panic!("four numbers")
    };
    let file = FileHandle::open(path).unwrap();
    let mut memory = vec![UNTOUCHED; count * (len + 1)];
    let options = ReadOptions::new().num_threads(threads);
    let mut pieces = pieces(&mut memory, len, step);
    match file.read_ranges_with(&mut pieces, &options) {
        Ok(counts) => {
            println!("ok {}", counts.iter().sum::<usize>());
            for (index, (memory, count)) in memory.chunks(len + 1).zip(counts).enumerate() {
                assert_same(&memory[..count], &pattern(1, (index * step) as u64, count));
                assert_all(&memory[count..], UNTOUCHED);
            }
        }
        Err(error) => {
            println!(
                "{:?} after {} in {:?}",
                error.kind(),
                error.done(),
                error.range()
            );
            println!("text: {error}");
        }
    }
    println!("io_short: {}", names::IO_SHORT.get());
    println!("io_interrupted: {}", names::IO_INTERRUPTED.get());
}

/// `calls-of-ranges PATH`: what is read in one go, as the kernel counts system calls.
pub(crate) fn calls(args: &[String]) {
    let file = FileHandle::open(&args[0]).unwrap();
    let one = ReadOptions::new().num_threads(1);
    let monitor = SummaryMonitor::start();
    let read = |count: usize, len: usize, step: usize, options: &ReadOptions| {
        let mut memory = vec![0; count * (len + 1)];
        let mut pieces = pieces(&mut memory, len, step);
        let before = system_calls();
        file.read_ranges_with(&mut pieces, options).unwrap();
        // The look itself is one read, or two where the text does not fit the first buffer: measured with no pieces.
        let after = system_calls();
        file.read_ranges_with(&mut [], options).unwrap();
        (after - before) - (system_calls() - after)
    };
    assert_eq!(read(64, 100, 100, &one), 1, "neighbours");
    assert_eq!(read(64, 100, 2148, &one), 1, "gaps of 2 KiB");
    assert_eq!(read(64, 100, 2149, &one), 64, "gaps of 2 KiB and a byte");
    let far = one.clone().gap(ByteSize::kib(3));
    assert_eq!(read(64, 100, 3172, &far), 1, "gaps of 3 KiB, as asked for");
    let near = one.clone().gap(ByteSize::new(0));
    assert_eq!(read(64, 100, 101, &near), 64, "no gaps, as asked for");
    assert_eq!(read(65, 100, 100, &one), 2, "more than 64 pieces");
    assert_eq!(read(64, 8192, 8192, &one), 2, "512 KiB");
    let totals = monitor.get();
    // Half of the calls were for no pieces.
    assert_eq!((totals.reads, totals.errors), (14, 0));
    let bytes = (64 * 5 + 65) * 100 + 64 * 8192;
    assert_eq!((totals.bytes_read, totals.bytes_requested), (bytes, bytes));
}

fn pieces(memory: &mut [u8], len: usize, step: usize) -> Vec<ReadPiece<'_>> {
    let piece = |(index, memory)| {
        let memory: &mut [u8] = memory;
        ReadPiece::new((index * step) as u64, &mut memory[..len])
    };
    // The memory of neighbours lies apart, so that it is not by accident that they are read in one go.
    memory.chunks_mut(len + 1).enumerate().map(piece).collect()
}

fn system_calls() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap();
    let row = text.lines().find_map(|line| line.strip_prefix("syscr: "));
    row.unwrap().parse().unwrap()
}
