//! The driver's table over libraries that lack things, answer with numbers of no header, or have either form of a call.

mod support;

use std::ffi::c_void;

use kvik_sys::{
    CallError, Candidates, Context, Cuda, CudaStatus, Device, DevicePtr, Event, MemoryType,
    PointerAttribute, Refusal, Stream, StreamFlags, Unsupported,
};

use support::Stub;

#[track_caller]
fn load(stub: &Stub) -> Cuda {
    // SAFETY: the stub keeps to the driver's interface, as far as it is called here.
    let cuda = unsafe { Cuda::load(&Candidates::only(&stub.path)) };
    cuda.expect("the stub has every function that is needed")
}

#[test]
fn with_no_library_the_error_lists_what_was_tried_and_why() {
    let candidates = Candidates::only("libkvik-nowhere.so.1").prefer("/nowhere/libkvik.so");
    // SAFETY: there is nothing that could be loaded.
    let error = unsafe { Cuda::load(&candidates) }.expect_err("nothing is there");
    let tried: Vec<_> = error.tried().collect();
    assert_eq!(tried.len(), 2);
    for ((name, refusal), expected) in tried
        .iter()
        .zip(["/nowhere/libkvik.so", "libkvik-nowhere.so.1"])
    {
        assert_eq!(*name, expected);
        let Refusal::NotOpened(text) = refusal else {
            panic!("{refusal:?}");
        };
        assert!(
            text.contains(expected) && text.contains("No such file"),
            "{text}"
        );
    }
    let text = error.to_string();
    assert!(
        text.starts_with("no library could be loaded: tried /nowhere/libkvik.so (/nowhere/libkvik.so: cannot open"),
        "{text}"
    );
    assert!(text.contains("; libkvik-nowhere.so.1 ("), "{text}");
}

#[test]
fn a_name_with_a_nul_byte_is_refused_with_words() {
    // SAFETY: no library can have this name.
    let error = unsafe { Cuda::load(&Candidates::only("lib\0cuda.so")) }.expect_err("no such name");
    assert!(
        error
            .to_string()
            .ends_with("(the name contains a NUL byte)"),
        "{error}"
    );
}

#[test]
fn a_file_that_is_no_library_is_refused_in_the_linkers_words() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("libcuda.so.1");
    std::fs::write(&file, "not a library").expect("a file");
    // SAFETY: no code is in it.
    let error = unsafe { Cuda::load(&Candidates::only(&file)) }.expect_err("no library");
    let refusal = error.tried().next().map(|(_, refusal)| refusal.clone());
    assert!(
        matches!(&refusal, Some(Refusal::NotOpened(text)) if text.contains("too short") || text.contains("ELF")),
        "{refusal:?}"
    );
}

#[test]
fn a_library_that_lacks_functions_is_refused_by_their_names_and_the_next_is_tried() {
    let minimal = Stub::build("cuda", &["MINIMAL"]);
    // SAFETY: nothing of it is called.
    let error =
        unsafe { Cuda::load(&Candidates::only(&minimal.path)) }.expect_err("it has cuInit alone");
    let Some((_, Refusal::Lacks(missing))) = error.tried().next() else {
        panic!("{error}");
    };
    assert!(
        missing.contains(&"cuDriverGetVersion") && missing.contains(&"cuEventElapsedTime"),
        "{missing:?}"
    );
    assert!(!missing.contains(&"cuInit"), "{missing:?}");
    // What a driver may lack is not missed.
    assert!(
        !missing.contains(&"cuMemAllocAsync") && !missing.contains(&"cuMemcpyBatchAsync"),
        "{missing:?}"
    );
    assert!(
        error.to_string().contains("it lacks cuDriverGetVersion, "),
        "{error}"
    );

    let whole = Stub::build("cuda", &["VERSION=12040"]);
    let candidates = Candidates::only(&whole.path).prefer(&minimal.path);
    // SAFETY: the stubs keep to the driver's interface, as far as they are called here.
    let cuda = unsafe { Cuda::load(&candidates) }.expect("the second has everything");
    assert_eq!(cuda.name(), whole.path.as_os_str());
    assert_eq!(cuda.path().as_deref(), Some(whole.path.as_path()));
    assert_eq!(cuda.init(), Ok(()));
    assert_eq!(cuda.driver_get_version(), Ok(12040));
}

#[test]
fn a_function_that_an_old_driver_lacks_is_named_with_the_version_that_brought_it() {
    let old = Stub::build("cuda", &["VERSION=11000"]);
    let cuda = load(&old);
    // SAFETY: the stub looks at no stream.
    let error = unsafe { cuda.mem_alloc_async(64, Stream::DEFAULT) }.expect_err("it came later");
    let CallError::Unsupported(missing) = error else {
        panic!("{error}");
    };
    assert_eq!((missing.symbol, missing.since), ("cuMemAllocAsync", "11.2"));
    assert_eq!(
        missing.to_string(),
        "the loaded library has no cuMemAllocAsync, which came with version 11.2"
    );
    let all: Vec<&str> = cuda
        .unsupported()
        .iter()
        .map(|missing| missing.symbol)
        .collect();
    assert!(
        all.contains(&"cuMemAllocAsync") && all.contains(&"cuMemcpyBatchAsync_v2"),
        "{all:?}"
    );
    assert!(!all.contains(&"cuInit"), "{all:?}");
    // The first form serves where the second is not there.
    assert_eq!(cuda.device_get_uuid(Device::from_raw(0)), Ok([1; 16]));

    let modern = Stub::build("cuda", &["VERSION=12040", "MODERN"]);
    let cuda = load(&modern);
    // SAFETY: the stub looks at no stream.
    let address = unsafe { cuda.mem_alloc_async(64, Stream::DEFAULT) };
    assert_eq!(address, Ok(DevicePtr::new(64)));
    assert!(!cuda.unsupported().contains(&missing));
    assert_eq!(cuda.device_get_uuid(Device::from_raw(0)), Ok([0xA2; 16]));
    assert!(
        cuda.get_proc_address(c"cuInit", 12000)
            .expect("it can be asked")
            .is_some()
    );
    assert_eq!(cuda.get_proc_address(c"cuLater", 12000), Ok(None));
    assert_eq!(cuda.get_proc_address(c"cuNever", 12000), Ok(None));
}

#[test]
fn a_status_that_nobody_knows_stays_a_number() {
    let stub = Stub::build("cuda", &["VERSION=12040"]);
    let cuda = load(&stub);
    let status = cuda
        .device_get_count()
        .expect_err("the stub has no devices");
    assert_eq!(status.code(), 123_456);
    assert_eq!(status.to_string(), "CUDA status 123456");
    assert_eq!(cuda.name_of(status), None);
    assert_eq!(
        cuda.text(status),
        "CUDA status 123456, which this driver has no text for"
    );
    assert_eq!(
        cuda.text(CudaStatus::NO_DEVICE),
        "CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected"
    );
}

#[test]
fn work_that_goes_on_is_a_value_and_no_error() {
    let stub = Stub::build("cuda", &["VERSION=12040"]);
    let cuda = load(&stub);
    let event =
        |number| Event::from_raw(std::ptr::without_provenance_mut(number)).expect("not null");
    let (late, done) = (event(16), event(17));
    // SAFETY: the stub follows no handle; this and the others below.
    let answer = unsafe { cuda.stream_query(Stream::DEFAULT) };
    assert_eq!(answer, Ok(false));
    // SAFETY: as above.
    let answer = unsafe { cuda.stream_query(Stream::LEGACY) };
    assert_eq!(answer, Ok(true));
    // SAFETY: as above.
    let answer = unsafe { cuda.stream_query(Stream::PER_THREAD) };
    assert_eq!(answer, Err(CudaStatus::ILLEGAL_ADDRESS));
    // SAFETY: as above.
    let answer = unsafe { cuda.event_query(late) };
    assert_eq!(answer, Ok(false));
    // SAFETY: as above.
    let answer = unsafe { cuda.event_query(done) };
    assert_eq!(answer, Ok(true));
    // SAFETY: as above.
    let answer = unsafe { cuda.event_elapsed_time(done, done) };
    assert_eq!(answer, Ok(Some(1.5)));
    // SAFETY: as above.
    let answer = unsafe { cuda.event_elapsed_time(late, done) };
    assert_eq!(answer, Ok(None));
    // SAFETY: as above.
    let answer = unsafe { cuda.stream_is_capturing(Stream::DEFAULT) };
    assert_eq!(answer, Ok(false));
    // SAFETY: as above.
    let answer = unsafe { cuda.stream_is_capturing(Stream::LEGACY) };
    assert_eq!(answer, Ok(true));
    assert_eq!(cuda.ctx_get_current(), Ok(None::<Context>));
    assert_eq!(
        cuda.stream_create(StreamFlags::NON_BLOCKING),
        Err(CudaStatus::NOT_SUPPORTED)
    );
}

#[test]
fn attributes_of_an_address_come_whole_whatever_their_width() {
    let stub = Stub::build("cuda", &["VERSION=12040"]);
    let cuda = load(&stub);
    let address = DevicePtr::new(0x7000_0000_1000);
    let wanted = [
        PointerAttribute::MEMORY_TYPE,
        PointerAttribute::RANGE_START_ADDR,
        PointerAttribute::DEVICE_ORDINAL,
        PointerAttribute::CONTEXT,
    ];
    let [kind, start, ordinal, context] = cuda
        .pointer_get_attributes(wanted, address)
        .expect("the stub answers");
    assert_eq!(MemoryType::new(kind), MemoryType::DEVICE);
    assert_eq!(start, 0x70_0000_0000);
    assert_eq!(ordinal as u32 as i32, -2);
    assert_eq!(context, 0);
    assert_eq!(
        cuda.pointer_get_attribute(PointerAttribute::MEMORY_TYPE, address),
        Ok(2)
    );
    let nowhere = cuda.pointer_get_attribute(PointerAttribute::MEMORY_TYPE, DevicePtr::new(0));
    assert_eq!(nowhere, Err(CudaStatus::INVALID_VALUE));
}

#[test]
fn names_end_where_the_driver_ends_them() {
    let stub = Stub::build("cuda", &["VERSION=12040"]);
    let cuda = load(&stub);
    assert_eq!(
        cuda.device_get_name(Device::from_raw(0)),
        Ok("Stub".to_owned())
    );
    let endless = cuda.device_get_name(Device::from_raw(1));
    assert_eq!(endless, Ok(String::new()));
}

#[test]
fn copies_and_host_functions_pass_their_arguments_on() {
    unsafe extern "C" fn count(data: *mut c_void) {
        // SAFETY: the test passes a `u32` of its own, and nobody else has it.
        unsafe { *data.cast::<u32>() += 1 };
    }
    let stub = Stub::build("cuda", &["VERSION=12040"]);
    let cuda = load(&stub);
    let mut device = [0_u8; 8];
    let mut back = [0_u8; 8];
    let there = DevicePtr::of_host(device.as_mut_ptr());
    // SAFETY: the stub's device memory is host memory; both arrays have eight bytes.
    let answer = unsafe { cuda.memcpy_htod(there, b"12345678".as_ptr(), 8) };
    assert_eq!(answer, Ok(()));
    // SAFETY: as above.
    let answer = unsafe { cuda.memcpy_dtoh(back.as_mut_ptr(), there, 8) };
    assert_eq!(answer, Ok(()));
    assert_eq!((&device, &back), (b"12345678", b"12345678"));
    let mut called = 0_u32;
    // SAFETY: the stub calls the function once, before it returns.
    let done = unsafe { cuda.launch_host_func(Stream::DEFAULT, count, (&raw mut called).cast()) };
    assert_eq!((done, called), (Ok(()), 1));
}

/// What comes of a batch of two copies: the status by which a stub tells its form, or what is missing.
fn batch(defines: &[&str]) -> Result<i32, Unsupported> {
    let stub = Stub::build("cuda", defines);
    let cuda = load(&stub);
    let supported = cuda.memcpy_batch_supported();
    let stream = Stream::from_raw(std::ptr::without_provenance_mut(32));
    let mut to = [[0_u8; 4], [0; 4]];
    let from = [*b"abcd", *b"efgh"];
    let places = [&raw mut to[0], &raw mut to[1]].map(|place| DevicePtr::of_host(place));
    let sources = from.each_ref().map(|source| DevicePtr::of_host(source));
    // SAFETY: the stub's device memory is host memory; each array has as many bytes as are copied to or from it.
    let done = unsafe { cuda.memcpy_batch_async(&places, &sources, &[4, 3], stream) };
    match done {
        Err(CallError::Status(status)) => {
            assert_eq!(supported, Ok(()));
            assert_eq!(to, [*b"abcd", *b"efg\0"]);
            Ok(status.code())
        }
        Err(CallError::Unsupported(missing)) => {
            assert_eq!(supported, Err(CallError::Unsupported(missing)));
            assert_eq!(to, [[0; 4]; 2]);
            Err(missing)
        }
        Ok(()) => panic!("the stubs answer with a status"),
    }
}

#[test]
fn a_batch_takes_the_form_that_library_and_driver_have() {
    const FIRST: &str = "FIRST_BATCH";
    const SECOND: &str = "SECOND_BATCH";
    assert_eq!(batch(&["VERSION=12080", FIRST]), Ok(1001));
    assert_eq!(batch(&["VERSION=12090", FIRST, SECOND]), Ok(1001));
    assert_eq!(batch(&["VERSION=13000", FIRST]), Ok(1001));
    assert_eq!(batch(&["VERSION=13000", FIRST, SECOND]), Ok(1002));
    assert_eq!(batch(&["VERSION=13050", SECOND]), Ok(1002));
    for defines in [
        &["VERSION=12080"][..],
        &["VERSION=12040", FIRST, SECOND],
        &["VERSION=12090", SECOND],
    ] {
        let missing = batch(defines).expect_err("no form can be called");
        assert_eq!(
            (missing.symbol, missing.since),
            ("cuMemcpyBatchAsync", "12.8"),
            "{defines:?}"
        );
    }
}

#[test]
fn a_batch_of_unequal_slices_is_refused_before_the_driver_sees_it() {
    let stub = Stub::build("cuda", &["VERSION=13000", "SECOND_BATCH"]);
    let cuda = load(&stub);
    let nowhere = [DevicePtr::new(0); 2];
    // SAFETY: nothing is copied.
    let refused =
        unsafe { cuda.memcpy_batch_async(&nowhere, &nowhere[..1], &[4, 4], Stream::LEGACY) };
    assert_eq!(refused, Err(CallError::Status(CudaStatus::INVALID_VALUE)));
}
