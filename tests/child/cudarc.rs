//! Reads into memory of cudarc and writes from it, in a process where cudarc and kvik find the fake libcuda.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use kvik::cudarc::driver::{CudaContext, CudaSlice, CudaStream, DriverError, result, sys};
use kvik::cudarc::{Owned, behind, device_buffer, source, target};
use kvik::{ErrorKind, FileHandle, ReadPiece};
use kvik_tests::fake::FakeCuda;
use kvik_tests::os;
use kvik_tests::pattern::pattern;
use tempfile::TempDir;

/// `cudarc SCENARIO ARGUMENTS`
pub(crate) fn run(args: &[String]) {
    let (scenario, args) = args.split_first().expect("the name of a scenario");
    let cuda = FakeCuda::at(Path::new("libcuda.so.1"));
    match scenario.as_str() {
        "slices" => slices(),
        "contexts" => contexts(cuda),
        "order" => order(cuda),
        "named" => named(cuda),
        "owned" => owned(cuda),
        "pinned" => pinned(cuda),
        "recording" => recording(cuda),
        "failures" => failures(cuda),
        "another-driver" => another_driver(&args[0]),
        "forks" => forks(),
        other => panic!("no scenario `{other}`"),
    }
    assert_eq!(cuda.faults(), Vec::<String>::new());
    assert_eq!(cuda.strays(), 0);
}

fn slices() {
    let folder = Folder::new();
    let context = CudaContext::new(0).unwrap();
    let stream = context.default_stream();
    let file = folder.file();

    let mut bytes = stream.alloc_zeros::<u8>(LEN).unwrap();
    file.read_exact_at(target(&mut bytes).unwrap(), 0).unwrap();
    assert!(stream.clone_dtoh(&bytes).unwrap() == folder.bytes);

    // A part of it, and nothing beside it.
    let mut view = bytes.slice_mut(1000..3000);
    file.read_exact_at(target(&mut view).unwrap(), 7).unwrap();
    let mut expected = folder.bytes.clone();
    expected[1000..3000].copy_from_slice(&folder.bytes[7..2007]);
    assert!(stream.clone_dtoh(&bytes).unwrap() == expected);

    let mut floats = stream.alloc_zeros::<[f32; 2]>(500).unwrap();
    file.read_exact_at(target(&mut floats).unwrap(), 8).unwrap();
    let pairs = stream.clone_dtoh(&floats).unwrap();
    let read = pairs.iter().flatten().flat_map(|float| float.to_ne_bytes());
    assert!(read.eq(folder.bytes[8..4008].iter().copied()));

    // Several at once, and a short read.
    let (mut left, mut right) = bytes.split_at_mut(LEN / 2);
    let mut pieces = [
        ReadPiece::new(0, target(&mut right).unwrap()),
        ReadPiece::new(LEN as u64 - 10, target(&mut left).unwrap()),
    ];
    assert_eq!(file.read_ranges(&mut pieces).unwrap(), [LEN / 2, 10]);
    let back = stream.clone_dtoh(&bytes).unwrap();
    assert!(back[LEN / 2..] == folder.bytes[..LEN / 2]);
    assert!(back[..10] == folder.bytes[LEN - 10..]);
    let mut none = bytes.slice_mut(7..7);
    assert_eq!(file.read_at(target(&mut none).unwrap(), 0).unwrap(), 0);

    // And out again: a slice, views of it, and what no file can be read into.
    let out = folder.out();
    out.write_all_at(source(&bytes).unwrap(), 0).unwrap();
    assert!(folder.written() == back);
    let view = bytes.slice(5..105);
    out.write_all_at(source(&view).unwrap(), 0).unwrap();
    let view = bytes.slice_mut(105..205);
    out.write_all_at(source(&view).unwrap(), 100).unwrap();
    assert!(folder.written()[..200] == back[5..205]);
    let flags = stream.clone_htod(&[true, false, true]).unwrap();
    out.write_all_at(source(&flags).unwrap(), 0).unwrap();
    assert_eq!(folder.written()[..3], [1, 0, 1]);
}

fn contexts(cuda: FakeCuda) {
    let folder = Folder::new();
    let [mine, other] = [1, 0].map(|device| CudaContext::new(device).unwrap());
    let stream = mine.new_stream().unwrap();
    let mut bytes = stream.alloc_zeros::<u8>(LEN).unwrap();
    other.bind_to_thread().unwrap();
    let check = |bytes: &mut CudaSlice<u8>, current: Option<sys::CUcontext>| {
        let now = || result::ctx::get_current().unwrap();
        assert_eq!(now(), current);
        let file = folder.file();
        file.read_exact_at(target(bytes).unwrap(), 0).unwrap();
        assert_eq!(now(), current);
        folder
            .out()
            .write_all_at(source(bytes).unwrap(), 0)
            .unwrap();
        assert_eq!(now(), current);
        let mut buffer = device_buffer(&mine, 100).unwrap();
        file.read_exact_at(&mut buffer, 0).unwrap();
        assert_eq!((buffer.device(), buffer.len()), (1, 100));
        drop(buffer);
        assert_eq!(now(), current);
    };
    check(&mut bytes, Some(other.cu_ctx()));
    thread::scope(|scope| scope.spawn(|| check(&mut bytes, None)).join().unwrap());
    assert!(folder.written() == folder.bytes);
    // The primary contexts are held by cudarc alone.
    assert_eq!([0, 1].map(|device| cuda.retained(device)), [1, 1]);
}

fn order(cuda: FakeCuda) {
    let folder = Folder::new();
    let context = CudaContext::new(0).unwrap();
    let [own, other] = [(); 2].map(|()| context.new_stream().unwrap());
    let default = context.default_stream();
    let nines = vec![9; LEN];
    let mut bytes = own.alloc_zeros::<u8>(LEN).unwrap();
    for stream in [&own, &other, &default] {
        let hold = Hold::new(cuda, stream);
        stream.memcpy_htod(&nines, &mut bytes).unwrap();
        hold.has_to_be_waited_for(|| {
            let target = target(&mut bytes).unwrap();
            folder.file().read_exact_at(target, 0).unwrap();
        });
        // Whoever comes next has the file's bytes, on whatever stream.
        for next in [&own, &other, &default] {
            assert!(next.clone_dtoh(&bytes).unwrap() == folder.bytes);
        }

        let hold = Hold::new(cuda, stream);
        stream.memcpy_htod(&nines, &mut bytes).unwrap();
        hold.has_to_be_waited_for(|| {
            let source = source(&bytes).unwrap();
            folder.out().write_all_at(source, 0).unwrap();
        });
        assert!(folder.written() == nines);
    }
    // A reader on another stream delays a read into the slice, too.
    let hold = Hold::new(cuda, &other);
    // Into pinned memory: a copy to any other is waited for.
    let mut back = os::pinned(&context, LEN);
    other.memcpy_dtoh(&bytes, &mut back).unwrap();
    hold.has_to_be_waited_for(|| {
        let target = target(&mut bytes).unwrap();
        folder.file().read_exact_at(target, 0).unwrap();
    });
    assert!(back.as_slice().unwrap() == nines);
}

fn named(cuda: FakeCuda) {
    let folder = Folder::new();
    let [here, there] = [0, 1].map(|device| CudaContext::new(device).unwrap());
    let [own, other] = [(); 2].map(|()| here.new_stream().unwrap());
    let mut bytes = own.alloc_zeros::<u8>(LEN).unwrap();
    for stream in [
        &other,
        &there.default_stream(),
        &there.new_stream().unwrap(),
    ] {
        // Work that has nothing to do with the slice.
        let mut unrelated = stream.alloc_zeros::<u8>(10).unwrap();
        stream.synchronize().unwrap();
        let hold = Hold::new(cuda, stream);
        stream.memset_zeros(&mut unrelated).unwrap();
        let read = |bytes: &mut CudaSlice<u8>| {
            let target = target(bytes).unwrap();
            folder.file().read_exact_at(target, 0).unwrap();
        };
        read(&mut bytes);
        hold.has_to_be_waited_for(|| {
            let target = behind(target(&mut bytes).unwrap(), stream);
            folder.file().read_exact_at(target, 0).unwrap();
        });
        let hold = Hold::new(cuda, stream);
        stream.memset_zeros(&mut unrelated).unwrap();
        hold.has_to_be_waited_for(|| {
            let source = behind(source(&bytes).unwrap(), stream);
            folder.out().write_all_at(source, 0).unwrap();
        });
        // The slice's own stream is not forgotten for it.
        let hold = Hold::new(cuda, &own);
        own.memset_zeros(&mut bytes).unwrap();
        hold.has_to_be_waited_for(|| {
            let target = behind(target(&mut bytes).unwrap(), stream);
            folder.file().read_exact_at(target, 0).unwrap();
        });
        assert!(own.clone_dtoh(&bytes).unwrap() == folder.bytes);
    }
}

fn owned(cuda: FakeCuda) {
    let folder = Folder::new();
    let context = CudaContext::new(0).unwrap();
    // The first one while there is no stream but the default one, when cudarc records no events.
    let default = context.default_stream();
    let zeros = default.alloc_zeros::<u16>(LEN / 2).unwrap();
    let pending = folder.file().submit_read(Owned::new(zeros).unwrap(), 0);
    let (count, buffer) = pending.finish();
    assert_eq!(count.unwrap(), LEN);
    assert_eq!(format!("{buffer:?}"), format!("Owned({LEN} bytes)"));
    let words = default.clone_dtoh(&buffer.into_inner()).unwrap();
    let read = words.iter().flat_map(|word| word.to_ne_bytes());
    assert!(read.eq(folder.bytes.iter().copied()));

    let [own, other] = [(); 2].map(|()| context.new_stream().unwrap());
    let nines = vec![9; LEN];
    for stream in [&own, &other] {
        let mut bytes = own.alloc_zeros::<u8>(LEN).unwrap();
        let hold = Hold::new(cuda, stream);
        stream.memcpy_htod(&nines, &mut bytes).unwrap();
        let pending = folder.file().submit_read(Owned::new(bytes).unwrap(), 0);
        let mut back = None;
        hold.has_to_be_waited_for(|| back = Some(pending.finish().1));
        let (count, buffer) = folder.out().submit_write(back.unwrap(), 0).finish();
        assert_eq!(count.unwrap(), LEN);
        let bytes = buffer.into_inner();
        assert!(other.clone_dtoh(&bytes).unwrap() == folder.bytes);
        assert!(folder.written() == folder.bytes);
    }

    // One that is refused is freed in its context, which is not the current one.
    drop((own, other));
    let stream = context.default_stream();
    let slice = stream.alloc_zeros::<u8>(LEN).unwrap();
    let refused = thread::spawn(move || {
        cuda.fail("cuPointerGetAttributes", "1", 999);
        let error = Owned::new(slice).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device);
        assert_eq!(result::ctx::get_current().unwrap(), None);
    });
    refused.join().unwrap();
    stream.synchronize().unwrap();
    context.check_err().unwrap();
    assert_eq!(cuda.device_bytes(), 0);

    // A buffer is freed by whoever drops it, also on a thread that works in no context, and that stays so.
    for stream in [context.default_stream(), context.new_stream().unwrap()] {
        let buffer = Owned::new(stream.alloc_zeros::<u8>(LEN).unwrap()).unwrap();
        let dropping = thread::spawn(move || {
            drop(buffer);
            assert_eq!(result::ctx::get_current().unwrap(), None);
        });
        dropping.join().unwrap();
        stream.synchronize().unwrap();
        context.check_err().unwrap();
        assert_eq!(cuda.device_bytes(), 0);
    }
}

fn pinned(cuda: FakeCuda) {
    let folder = Folder::new();
    let context = CudaContext::new(0).unwrap();
    let stream = context.new_stream().unwrap();
    let mut host = os::pinned(&context, LEN);
    let read = |host: &mut _| {
        let target = target(host).unwrap();
        assert!(!target.is_on_device());
        folder.file().read_exact_at(target, 0).unwrap();
    };
    read(&mut host);
    assert!(host.as_slice().unwrap() == folder.bytes);
    // A copy from it that is under way comes first.
    let mut bytes = stream.alloc_zeros::<u8>(LEN).unwrap();
    let hold = Hold::new(cuda, &stream);
    stream.memcpy_htod(&host, &mut bytes).unwrap();
    hold.has_to_be_waited_for(|| {
        let target = target(&mut host).unwrap();
        folder.file().read_at(target, LEN as u64 / 2).unwrap();
    });
    assert!(stream.clone_dtoh(&bytes).unwrap() == folder.bytes);
    let (front, back) = host.as_slice().unwrap().split_at(LEN / 2);
    assert!(front == back && *front == folder.bytes[LEN / 2..]);
    // And one to it.
    let hold = Hold::new(cuda, &stream);
    stream.memcpy_dtoh(&bytes, &mut host).unwrap();
    hold.has_to_be_waited_for(|| {
        let source = source(&host).unwrap();
        folder.out().write_all_at(source, 0).unwrap();
    });
    assert!(folder.written() == folder.bytes);
    let pending = folder.file().submit_read(Owned::new(host).unwrap(), 0);
    let (count, buffer) = pending.finish();
    assert_eq!(count.unwrap(), LEN);
    assert!(buffer.into_inner().as_slice().unwrap() == folder.bytes);
    assert_eq!(cuda.registered_bytes(), 0);
}

fn recording(cuda: FakeCuda) {
    let context = CudaContext::new(0).unwrap();
    let [own, other] = [(); 2].map(|()| context.new_stream().unwrap());
    let mut bytes = own.alloc_zeros::<u8>(10).unwrap();
    other.memset_zeros(&mut bytes).unwrap();
    context.synchronize().unwrap();
    cuda.set_capturing(own.cu_stream().addr(), 1);
    for error in [target(&mut bytes).unwrap_err(), source(&bytes).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(
            error.to_string().contains("is recording a graph"),
            "{error}"
        );
    }
    // It was not disturbed: a recording that ends early is a fault.
    cuda.set_capturing(own.cu_stream().addr(), 0);
    target(&mut bytes).unwrap();
}

fn failures(cuda: FakeCuda) {
    let context = CudaContext::new(0).unwrap();
    let [own, other] = [(); 2].map(|()| context.new_stream().unwrap());
    let mut bytes = own.alloc_zeros::<u8>(10).unwrap();
    other.memset_zeros(&mut bytes).unwrap();
    // cudarc only keeps it when a stream cannot be told to wait for another.
    for call in ["cuStreamWaitEvent", "cuEventRecord", "cuCtxGetCurrent"] {
        cuda.fail(call, "1", 999);
        let error = target(&mut bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device, "{call}: {error}");
        assert!(error.to_string().contains("CUDA_ERROR_UNKNOWN"), "{error}");
        target(&mut bytes).unwrap();
    }
    // What cudarc has kept of something else is said once.
    let out_of_memory = sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY;
    context.record_err::<()>(Err(DriverError(out_of_memory)));
    assert_eq!(source(&bytes).unwrap_err().kind(), ErrorKind::OutOfMemory);
    source(&bytes).unwrap();
}

fn another_driver(path: &str) {
    let layer = kvik::Layer::new().cuda_library(Some(path.into()));
    kvik::Config::set_process(layer).unwrap();
    let stream = CudaContext::new(0).unwrap().default_stream();
    let mut bytes = stream.alloc_zeros::<u8>(10).unwrap();
    for error in [target(&mut bytes).unwrap_err(), source(&bytes).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Device);
        let text = error.to_string();
        assert!(text.contains("does not know cudarc's memory"), "{text}");
    }
    assert_eq!(Owned::new(bytes).unwrap_err().kind(), ErrorKind::Device);
}

fn forks() {
    let stream = CudaContext::new(0).unwrap().default_stream();
    let mut bytes = stream.alloc_zeros::<u8>(10).unwrap();
    target(&mut bytes).unwrap();
    os::forked(|| {
        assert_eq!(target(&mut bytes).unwrap_err().kind(), ErrorKind::Forked);
    })
    .succeeded();
    target(&mut bytes).unwrap();
}

/// A file with a pattern, and one to write to.
struct Folder {
    folder: TempDir,
    bytes: Vec<u8>,
}

impl Folder {
    fn new() -> Folder {
        let folder = tempfile::tempdir().unwrap();
        let bytes = pattern(3, 0, LEN);
        std::fs::write(folder.path().join("in"), &bytes).unwrap();
        Folder { folder, bytes }
    }

    fn file(&self) -> FileHandle {
        FileHandle::open(self.folder.path().join("in")).unwrap()
    }

    fn out(&self) -> FileHandle {
        let options = FileHandle::options().write(true).create(true);
        options.open(self.folder.path().join("out")).unwrap()
    }

    fn written(&self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("out")).unwrap()
    }
}

/// A stream on which nothing runs for the time being.
struct Hold {
    cuda: FakeCuda,
    stream: Arc<CudaStream>,
}

impl Hold {
    fn new(cuda: FakeCuda, stream: &Arc<CudaStream>) -> Hold {
        // A default stream is that of the current context.
        stream.context().bind_to_thread().unwrap();
        cuda.hold(stream.cu_stream().addr());
        Hold {
            cuda,
            stream: Arc::clone(stream),
        }
    }

    /// Fails if `work` ends while the stream is held, or does not end when it is let go.
    #[track_caller]
    fn has_to_be_waited_for(self, work: impl FnOnce() + Send) {
        let (sender, receiver) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || {
                work();
                sender.send(()).unwrap();
            });
            // A transfer that waits for nothing is done long before; one that waits is never done, however late it starts.
            let early = receiver.recv_timeout(Duration::from_millis(50));
            self.stream.context().bind_to_thread().unwrap();
            self.cuda.release(self.stream.cu_stream().addr());
            assert!(early.is_err(), "nobody waited for the stream");
            receiver.recv().unwrap();
        });
    }
}

/// Some pages and a part of one.
const LEN: usize = 70_000;
