//! A process that finds the fakes where the real libraries would be, with what its environment tells them.

use std::path::Path;

use kvik_tests::fake::{FakeCuFile, FakeCuda, at};

/// `fakes`, with the folder of the fakes in `LD_LIBRARY_PATH` and five variables: three devices of version 12.4, full after 100
/// bytes, whose second stream fails; a libcufile of 1.14.
pub(crate) fn run() {
    let cuda = FakeCuda::at(Path::new("libcuda.so.1"));
    let mut count = 0_usize;
    assert_eq!(cuda.call("cuInit", [0]), 0);
    assert_eq!(cuda.call("cuDeviceGetCount", [at(&mut count)]), 0);
    let mut version = 0_i32;
    assert_eq!(cuda.call("cuDriverGetVersion", [at(&mut version)]), 0);
    assert_eq!((count, version), (3, 12040));
    let mut word = 0_usize;
    assert_eq!(cuda.call("cuDevicePrimaryCtxRetain", [at(&mut word), 2]), 0);
    assert_eq!(cuda.call("cuCtxSetCurrent", [word]), 0);
    assert_eq!(cuda.call("cuMemAlloc_v2", [at(&mut word), 101]), 2);
    let codes = [1, 2, 3].map(|_| cuda.call("cuStreamCreate", [at(&mut word), 1]));
    assert_eq!(codes, [0, 999, 0]);
    // It finds the other one beside the file behind its name.
    let cufile = FakeCuFile::at(Path::new("libcufile.so.0"));
    assert_eq!(cufile.call("cuFileDriverOpen", []), 0);
    assert_eq!(cufile.call("cuFileGetVersion", [at(&mut version)]), 0);
    assert_eq!((version, cufile.faults()), (1140, Vec::new()));
}
