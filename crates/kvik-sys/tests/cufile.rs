//! cuFile's table over a library that answers by a plan: statuses, signed counts, arguments that go through structures.

mod support;

use std::ptr::NonNull;
use std::time::Duration;

use kvik_sys::{
    AsyncArguments, BatchEvent, BatchRequest, BatchState, BoolParameter, CallError, Candidates,
    CuFile, CuFileFailure, CuFileHandle, CuFileStatus, CudaStatus, DevicePtr, Refusal,
    SizeParameter, Stream, StreamHints, StringParameter,
};

use support::Stub;

#[track_caller]
fn load(stub: &Stub) -> CuFile {
    // SAFETY: the stub keeps to cuFile's interface, as far as it is called here.
    let cufile = unsafe { CuFile::load(&Candidates::only(&stub.path)) };
    cufile.expect("the stub has every function that is needed")
}

/// A handle for which the stub reads and writes, or fails: with `EIO` for 1, with 5008 for 2.
#[track_caller]
fn handle(cufile: &CuFile, descriptor: i32) -> CuFileHandle {
    // SAFETY: the stub takes the number and does nothing with it.
    unsafe { cufile.handle_register(descriptor) }.expect("the stub registers it")
}

fn stream() -> Stream {
    Stream::from_raw(std::ptr::without_provenance_mut(32))
}

fn status(op: i32) -> CuFileStatus {
    CuFileStatus { op, cuda: 0 }
}

#[test]
fn a_driver_library_is_no_cufile() {
    let stub = Stub::build("cuda", &["VERSION=12040"]);
    // SAFETY: nothing of it is called.
    let error =
        unsafe { CuFile::load(&Candidates::only(&stub.path)) }.expect_err("another library");
    let Some((_, Refusal::Lacks(missing))) = error.tried().next() else {
        panic!("{error}");
    };
    assert!(
        missing.contains(&"cuFileDriverOpen") && missing.contains(&"cuFileWrite"),
        "{missing:?}"
    );
    assert!(!missing.contains(&"cuFileGetVersion"), "{missing:?}");
}

#[test]
fn what_an_old_cufile_lacks_is_named_and_the_old_close_serves() {
    let stub = Stub::build("cufile", &[]);
    let cufile = load(&stub);
    let missing: Vec<&str> = cufile
        .unsupported()
        .iter()
        .map(|missing| missing.symbol)
        .collect();
    assert!(
        missing.contains(&"cuFileReadAsync") && missing.contains(&"cuFileDriverClose_v2"),
        "{missing:?}"
    );
    assert!(!missing.contains(&"cuFileRead"), "{missing:?}");
    let Err(CallError::Unsupported(version)) = cufile.get_version() else {
        panic!("the stub does not tell its version");
    };
    assert_eq!((version.symbol, version.since), ("cuFileGetVersion", "1.8"));
    assert_eq!(
        cufile.use_count().map_err(|missing| missing.symbol),
        Err("cuFileUseCount")
    );
    // SAFETY: nothing is registered.
    let answer = unsafe { cufile.driver_close() };
    assert_eq!(answer, Err(status(5901)));

    let modern = Stub::build("cufile", &["MODERN"]);
    let cufile = load(&modern);
    assert_eq!(cufile.unsupported(), []);
    assert_eq!(cufile.get_version(), Ok(1150));
    assert_eq!(cufile.use_count(), Ok(3));
    // SAFETY: nothing is registered.
    let answer = unsafe { cufile.driver_close() };
    assert_eq!(answer, Err(status(5902)));
}

#[test]
fn a_failure_of_the_driver_carries_both_numbers() {
    let stub = Stub::build("cufile", &[]);
    let cufile = load(&stub);
    let error = cufile.driver_open().expect_err("the stub cannot");
    assert_eq!(
        (error.op, error.driver()),
        (5011, Some(CudaStatus::NO_DEVICE))
    );
    assert_eq!(error.name(), Some("CU_FILE_CUDA_DRIVER_ERROR"));
    assert_eq!(
        cufile.driver_set_max_cache_size(77_777),
        Err(status(77_777))
    );
    assert_eq!(
        cufile.driver_set_max_pinned_mem_size(5003),
        Err(status(5003))
    );
    assert_eq!(cufile.driver_set_poll_mode(true, 4), Ok(()));
}

#[test]
fn properties_come_field_by_field() {
    let stub = Stub::build("cufile", &[]);
    let properties = load(&stub)
        .driver_get_properties()
        .expect("the stub tells them");
    assert_eq!(properties.nvfs_version, (2, 17));
    assert_eq!(
        (properties.poll_threshold_kib, properties.max_direct_io_kib),
        (4, 16384)
    );
    assert_eq!(
        (properties.status_flags, properties.control_flags),
        (1 << 4, 1 << 1)
    );
    assert_eq!(properties.feature_flags, 1 << 4 | 1 << 1);
    assert_eq!(
        (
            properties.max_device_cache_kib,
            properties.per_buffer_cache_kib
        ),
        (131_072, 1024)
    );
    assert_eq!(properties.max_device_pinned_kib, 33_554_432);
    assert_eq!(
        (properties.max_batch_io, properties.max_batch_io_timeout_ms),
        (128, 500)
    );
    assert!(properties.allows_compat_mode() && properties.supports_p2p());
    assert!(properties.supports_batches() && !properties.supports_streams());
}

#[test]
fn reads_and_writes_answer_with_bytes_an_errno_or_a_status() {
    let stub = Stub::build("cufile", &[]);
    let cufile = load(&stub);
    let mut memory = [0_u8; 8];
    let base = DevicePtr::of_host(memory.as_mut_ptr());
    let (good, broken, refused) = (handle(&cufile, 9), handle(&cufile, 1), handle(&cufile, 2));
    // SAFETY: the stub writes four bytes from the second on; this and the others below.
    let answer = unsafe { cufile.read(good, base, 4, 7, 2) };
    assert_eq!(answer, Ok(4));
    assert_eq!(memory, [0, 0, 7, 7, 7, 7, 0, 0]);
    // SAFETY: as above, and it reads them.
    let answer = unsafe { cufile.write(good, base, 4, 7, 4) };
    assert_eq!(answer, Ok(2));
    // SAFETY: as above.
    let failure = unsafe { cufile.read(broken, base, 4, 7, 2) };
    assert_eq!(failure, Err(CuFileFailure::System(Some(5))));
    // SAFETY: as above.
    let failure = unsafe { cufile.read(refused, base, 4, 7, 2) };
    assert_eq!(failure, Err(CuFileFailure::Status(status(5008))));
    // SAFETY: the stub takes any number.
    let failure = unsafe { cufile.handle_register(-1) };
    assert_eq!(failure, Err(status(CuFileStatus::HANDLE_NOT_REGISTERED)));
    // SAFETY: the handle is not used again.
    unsafe { cufile.handle_deregister(good) };
    // SAFETY: the stub does nothing with the memory.
    let answer = unsafe { cufile.buf_register(base, 4096) };
    assert_eq!(answer, Ok(()));
    // SAFETY: as above.
    let answer = unsafe { cufile.buf_deregister(base) };
    assert_eq!(answer, Err(status(5024)));
}

#[test]
fn settings_go_by_the_numbers_of_the_header() {
    let stub = Stub::build("cufile", &["MODERN"]);
    let cufile = load(&stub);
    assert_eq!(
        cufile.set_parameter_bool(BoolParameter::ALLOW_COMPAT_MODE, false),
        Ok(())
    );
    let refused = cufile.set_parameter_bool(BoolParameter::FORCE_COMPAT_MODE, false);
    assert_eq!(refused, Err(CallError::Status(status(5022))));
    assert_eq!(
        cufile.set_parameter_size_t(SizeParameter::MAX_DIRECT_IO_SIZE_KB, 1024),
        Ok(())
    );
    assert_eq!(
        cufile.set_parameter_string(StringParameter::LOG_DIR, c"logs"),
        Ok(())
    );
}

#[test]
fn arguments_in_a_stream_are_each_a_place_of_their_own() {
    let stub = Stub::build("cufile", &["MODERN"]);
    let cufile = load(&stub);
    let hints = StreamHints::FIXED_BUF_OFFSET
        | StreamHints::FIXED_FILE_OFFSET
        | StreamHints::FIXED_FILE_SIZE
        | StreamHints::PAGE_ALIGNED_INPUTS;
    // SAFETY: the stub follows no stream; this and the others below.
    let answer = unsafe { cufile.stream_register(stream(), hints) };
    assert_eq!(answer, Ok(()));
    let mut memory = [0_u8; 8];
    let base = DevicePtr::of_host(memory.as_mut_ptr());
    let good = handle(&cufile, 9);
    let mut arguments = AsyncArguments {
        bytes: 3,
        file_offset: 5,
        base_offset: 1,
        count: 0,
    };
    // SAFETY: as above; the stub uses the arguments and the memory before it returns.
    let answer = unsafe { cufile.read_async(good, base, NonNull::from(&mut arguments), stream()) };
    assert_eq!(answer, Ok(()));
    assert_eq!((arguments.count, memory), (3, [0, 5, 5, 5, 0, 0, 0, 0]));
    arguments.bytes = 5;
    // SAFETY: as above.
    let answer = unsafe { cufile.write_async(good, base, NonNull::from(&mut arguments), stream()) };
    assert_eq!(answer, Ok(()));
    assert_eq!(
        arguments,
        AsyncArguments {
            bytes: 5,
            file_offset: 5,
            base_offset: 1,
            count: 3
        }
    );
    // SAFETY: as above.
    let refused =
        unsafe { cufile.read_async(good, base, NonNull::from(&mut arguments), Stream::DEFAULT) };
    assert_eq!(refused, Err(CallError::Status(status(5038))));
    // SAFETY: as above.
    let answer = unsafe { cufile.stream_deregister(stream()) };
    assert_eq!(answer, Ok(()));
}

#[test]
fn a_batch_carries_requests_there_and_events_back() {
    let stub = Stub::build("cufile", &["MODERN"]);
    let cufile = load(&stub);
    assert_eq!(
        cufile.batch_io_set_up(17),
        Err(CallError::Status(status(5037)))
    );
    let batch = cufile.batch_io_set_up(4).expect("there is room");
    let mut memory = [0_u8; 8];
    let base = DevicePtr::of_host(memory.as_mut_ptr());
    let (good, refused) = (handle(&cufile, 9), handle(&cufile, 2));
    let mut requests = [
        BatchRequest::read(good, base, 2, 6, 3, 41),
        BatchRequest::write(good, base, 8, 6, 0, 42),
        BatchRequest::read(refused, base, 2, 6, 3, 43),
    ];
    // SAFETY: the stub is done with requests and memory when it returns.
    let answer = unsafe { cufile.batch_io_submit(batch, NonNull::from(&mut requests[..])) };
    assert_eq!(answer, Ok(()));
    assert_eq!(memory, [0, 0, 0, 6, 6, 0, 0, 0]);
    let mut events = [BatchEvent::EMPTY; 4];
    let wait = Some(Duration::new(2, 500));
    // SAFETY: the batch is alive; this and the others below.
    let answer = unsafe { cufile.batch_io_get_status(batch, 3, &mut events, wait) };
    assert_eq!(answer, Ok(3));
    let told = events.map(|event| (event.cookie(), event.state(), event.count()));
    assert_eq!(told[0], (41, BatchState::COMPLETE, Ok(2)));
    assert_eq!(told[1], (42, BatchState::COMPLETE, Ok(2)));
    let failure = CuFileFailure::Status(status(CuFileStatus::IO_NOT_SUPPORTED));
    assert_eq!(told[2], (43, BatchState::FAILED, Err(failure)));
    // SAFETY: as above.
    let answer = unsafe { cufile.batch_io_cancel(batch) };
    assert_eq!(answer, Ok(()));
    // SAFETY: as above, and it is not used again.
    let answer = unsafe { cufile.batch_io_destroy(batch) };
    assert_eq!(answer, Ok(()));
}
