//! The fake libcufile moves bytes between files and the fake device, and notices what must not be done to it.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;

use kvik_tests::fake::{FakeCuFile, at};

use super::Cuda;

const NOT_INITIALIZED: i32 = 5001;
const IO_NOT_SUPPORTED: i32 = 5008;
const CUDA_ERROR: i32 = 5011;
const POINTER_INVALID: i32 = 5012;
const MEMORY_ALREADY_REGISTERED: i32 = 5023;
const MEMORY_NOT_REGISTERED: i32 = 5024;
const DRIVER_ALREADY_OPEN: i32 = 5026;
const NOT_REGISTERED: i32 = 5027;
const ALREADY_REGISTERED: i32 = 5028;

/// The driver open, and a registered file of the digits from 0 to 9.
struct Setting {
    cuda: Cuda,
    cufile: FakeCuFile,
    file: File,
    handle: usize,
}

impl Setting {
    #[track_caller]
    fn start() -> Setting {
        let cuda = Cuda::start();
        let cufile = FakeCuFile::here();
        assert_eq!(cufile.call("cuFileDriverOpen", []), 0);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        let handle = register(&cufile, &file).unwrap();
        Setting {
            cuda,
            cufile,
            file,
            handle,
        }
    }

    fn read(&self, base: usize, size: usize, file_offset: usize, offset: usize) -> isize {
        let words = [self.handle, base, size, file_offset, offset];
        self.cufile.call_for_word("cuFileRead", words) as isize
    }

    fn write(&self, base: usize, size: usize, file_offset: usize, offset: usize) -> isize {
        let words = [self.handle, base, size, file_offset, offset];
        self.cufile.call_for_word("cuFileWrite", words) as isize
    }
}

fn register(cufile: &FakeCuFile, file: &File) -> Result<usize, i32> {
    let mut handle = 0_usize;
    // A `CUfileDescr_t`: an ordinary descriptor, its number, no operations.
    let mut descriptor = [1_usize, usize::try_from(file.as_raw_fd()).unwrap(), 0];
    match cufile.call(
        "cuFileHandleRegister",
        [at(&mut handle), at(&mut descriptor)],
    ) {
        0 => Ok(handle),
        code => Err(code),
    }
}

#[test]
fn the_driver_is_not_opened_before_cu_init() {
    let cufile = FakeCuFile::here();
    assert_eq!(cufile.call("cuFileDriverOpen", []), CUDA_ERROR);
    assert_eq!(cufile.faults().len(), 1);
    let mut version = 0_i32;
    assert_eq!(cufile.call("cuFileGetVersion", [at(&mut version)]), 0);
    assert_eq!(version, 1150);
}

#[test]
fn bytes_go_from_a_file_to_the_device_and_back() {
    let it = Setting::start();
    let memory = it.cuda.memory(8);
    assert_eq!(it.read(memory, 4, 3, 2), 4);
    assert_eq!(it.cuda.peek(memory, 8), *b"\xDB\xDB3456\xDB\xDB");
    // Short at the end of the file, and zeros behind it, as far as was asked for.
    assert_eq!(it.read(memory, 8, 8, 0), 2);
    assert_eq!(it.cuda.peek(memory, 8), *b"89\0\0\0\0\0\0");
    assert_eq!(it.read(memory, 8, 10, 0), 0);
    assert_eq!(it.read(memory, 4, 4, 1), 4);
    assert_eq!(it.write(memory, 3, 9, 1), 3);
    let mut back = [0_u8; 12];
    std::os::unix::fs::FileExt::read_exact_at(&it.file, &mut back, 0).unwrap();
    assert_eq!(&back, b"012345678456");
    assert_eq!(
        (it.cufile.faults(), it.cufile.most_moving()),
        (Vec::new(), 1)
    );
}

#[test]
fn transfers_fail_and_fall_short_on_demand() {
    let it = Setting::start();
    let memory = it.cuda.memory(10);
    it.cufile.fail("cuFileRead", "1", 5044);
    it.cufile.fail("cuFileRead", "2", libc::EIO);
    it.cufile.fall_short("cuFileRead", "3");
    assert_eq!(it.read(memory, 10, 0, 0), -5044);
    assert_eq!(it.read(memory, 10, 0, 0), -1);
    assert_eq!(
        std::io::Error::last_os_error().raw_os_error(),
        Some(libc::EIO)
    );
    assert_eq!(
        (it.read(memory, 10, 0, 0), it.read(memory, 10, 0, 0)),
        (5, 10)
    );
    it.cufile.fail("cuFileHandleRegister", "1", NOT_REGISTERED);
    assert_eq!(register(&it.cufile, &it.file), Err(NOT_REGISTERED));
}

#[test]
fn what_is_not_registered_or_not_allocated_is_refused() {
    let it = Setting::start();
    let memory = it.cuda.memory(10);
    assert_eq!(it.read(memory, 11, 0, 0), -POINTER_INVALID as isize);
    assert_eq!(it.read(memory, 5, 0, 6), -POINTER_INVALID as isize);
    assert_eq!(register(&it.cufile, &it.file), Err(ALREADY_REGISTERED));
    it.cufile
        .call_for_word("cuFileHandleDeregister", [it.handle]);
    assert_eq!(it.read(memory, 1, 0, 0), -NOT_REGISTERED as isize);
    it.cufile
        .call_for_word("cuFileHandleDeregister", [it.handle]);
    assert_eq!((it.cufile.files(), it.cufile.faults().len()), (0, 1));
}

#[test]
fn buffers_are_registered_once() {
    let it = Setting::start();
    let memory = it.cuda.memory(10);
    let buffer = |name: &str, base: usize| it.cufile.call(name, [base, 10, 0]);
    assert_eq!(buffer("cuFileBufRegister", memory), 0);
    assert_eq!(
        buffer("cuFileBufRegister", memory),
        MEMORY_ALREADY_REGISTERED
    );
    assert_eq!(it.cufile.buffer_bytes(), 10);
    assert_eq!(buffer("cuFileBufDeregister", memory), 0);
    assert_eq!(buffer("cuFileBufDeregister", memory), MEMORY_NOT_REGISTERED);
    assert_eq!(buffer("cuFileBufRegister", memory + 1), POINTER_INVALID);
}

#[test]
fn a_descriptor_that_is_closed_too_early_is_noticed() {
    let Setting {
        cuda,
        cufile,
        file,
        handle,
    } = Setting::start();
    let memory = cuda.memory(10);
    drop(file);
    let read = cufile.call_for_word("cuFileRead", [handle, memory, 1, 0, 0]) as isize;
    assert!(
        read < 0 && cufile.faults()[0].contains("was closed"),
        "{:?}",
        cufile.faults()
    );
}

#[test]
fn a_file_that_is_deregistered_while_bytes_move_is_noticed() {
    let it = Setting::start();
    let memory = it.cuda.memory(10);
    it.cufile.hold();
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| it.read(memory, 10, 0, 0));
        while it.cufile.moving() == 0 {
            std::thread::yield_now();
        }
        it.cufile
            .call_for_word("cuFileHandleDeregister", [it.handle]);
        it.cufile.release();
        assert_eq!(reading.join().unwrap(), 10);
    });
    assert_eq!(it.cufile.faults().len(), 1);
}

#[test]
fn the_driver_counts_how_often_it_was_opened() {
    let it = Setting::start();
    let call = |name: &str| it.cufile.call(name, []);
    assert_eq!((call("cuFileDriverOpen"), it.cufile.opened()), (0, 2));
    assert_eq!(
        (call("cuFileDriverClose_v2"), call("cuFileDriverClose")),
        (0, 0)
    );
    // A file was still registered, and there was nothing more to close.
    assert_eq!(it.cufile.faults().len(), 1);
    assert_eq!(call("cuFileDriverClose_v2"), NOT_INITIALIZED);
    assert_eq!(
        it.read(it.cuda.memory(1), 1, 0, 0),
        -NOT_INITIALIZED as isize
    );
}

#[test]
fn without_compatible_mode_and_a_direct_path_no_file_is_registered() {
    let _cuda = Cuda::start();
    let cufile = FakeCuFile::here();
    assert_eq!(cufile.call("cuFileSetParameterBool", [1, 0]), 0);
    assert_eq!(cufile.call("cuFileDriverOpen", []), 0);
    assert_eq!(
        cufile.call("cuFileSetParameterBool", [1, 1]),
        DRIVER_ALREADY_OPEN
    );
    let file = tempfile::tempfile().unwrap();
    assert_eq!(register(&cufile, &file), Err(IO_NOT_SUPPORTED));
    let version = || {
        let mut properties = [0_u32; 14];
        assert_eq!(
            cufile.call("cuFileDriverGetProperties", [at(&mut properties)]),
            0
        );
        (properties[0], properties[1])
    };
    assert_eq!(version(), (0, 0));
    cufile.set_nvfs(2);
    assert_eq!(version(), (2, 22));
    assert!(register(&cufile, &file).is_ok());
    assert_eq!(cufile.parameters(), ["bool:1=false"]);
}

/// The numbers of a transfer on a stream, where cuFile finds them.
struct Numbers {
    size: usize,
    file_offset: i64,
    offset: i64,
    count: isize,
}

impl Setting {
    /// Queues a read of four bytes at 5 to 1, and makes it two before the stream gets there. Returns the count.
    fn read_on_stream(&self, memory: usize, stream: usize) -> isize {
        let mut numbers = Numbers {
            size: 4,
            file_offset: 5,
            offset: 1,
            count: -7,
        };
        let words = [
            self.handle,
            memory,
            at(&mut numbers.size),
            at(&mut numbers.file_offset),
            at(&mut numbers.offset),
            at(&mut numbers.count),
            stream,
        ];
        self.cuda.hold(stream);
        assert_eq!(self.cufile.call("cuFileReadAsync", words), 0);
        assert_eq!(numbers.count, -7);
        numbers.size = 2;
        self.cuda.release(stream);
        self.cuda.ok("cuStreamSynchronize", [stream]);
        // Written behind the back of the compiler, so it is looked at anew.
        std::hint::black_box(&numbers).count
    }
}

#[test]
fn a_stream_reads_sizes_when_it_gets_there_unless_they_are_fixed() {
    let it = Setting::start();
    let (memory, stream) = (it.cuda.memory(10), it.cuda.stream());
    for (flags, expected) in [(0, 2), (4, 4)] {
        assert_eq!(it.cufile.call("cuFileStreamRegister", [stream, flags]), 0);
        assert_eq!(it.read_on_stream(memory, stream), expected);
        assert_eq!(it.cuda.peek(memory + 1, 2), *b"56");
    }
    it.cufile.fail_late("cuFileReadAsync", "1", 5044);
    assert_eq!(it.read_on_stream(memory, stream), -5044);
    assert_eq!(it.cufile.call("cuFileStreamDeregister", [stream]), 0);
    assert_eq!((it.cufile.streams(), it.cuda.faults()), (0, Vec::new()));
}

#[test]
fn entries_of_a_batch_are_reported_one_by_one() {
    let it = Setting::start();
    let memory = it.cuda.memory(30);
    let mut batch = 0_usize;
    assert_eq!(it.cufile.call("cuFileBatchIOSetUp", [at(&mut batch), 3]), 0);
    // A `CUfileIOParams_t`: mode, base, offset in the file and in the buffer, size, file, read, cookie.
    let entry = |cookie: usize| [1, memory, 0, 10 * cookie, 10, it.handle, 0, cookie];
    let mut entries: Vec<[usize; 8]> = (0..3).map(entry).collect();
    it.cufile.fail_late("batch-entry", "2", 5044);
    it.cufile.fall_short("batch-entry", "3");
    let submit = |count: usize, entries: usize| {
        it.cufile
            .call("cuFileBatchIOSubmit", [batch, count, entries, 0])
    };
    assert_eq!(submit(3, at(entries.as_mut_slice())), 0);
    assert_eq!(submit(1, at(entries.as_mut_slice())), 5037);
    let (mut events, mut count) = ([[0_usize; 3]; 3], 3_u32);
    let words = [batch, 3, at(&mut count), at(&mut events), 0];
    assert_eq!(it.cufile.call("cuFileBatchIOGetStatus", words), 0);
    // Cookie, status (complete, failed), count.
    let told = events.map(|[cookie, status, count]| (cookie, status as i32, count as isize));
    assert_eq!(told, [(0, 0x10, 10), (1, 0x40, -5044), (2, 0x10, 5)]);
    it.cufile.call_for_word("cuFileBatchIODestroy", [batch]);
    assert_eq!((it.cufile.batches(), it.cufile.faults()), (0, Vec::new()));
}
