//! The fakes keep the rules of what they stand for; without that, tests on them would prove nothing.

mod calls;
mod captures;
mod contexts;
mod files;
mod kernels;
mod memory;
mod pointers;
mod streams;

use std::ops::Deref;

use kvik_tests::fake::{FakeCuda, at};

/// The fake libcuda after `cuInit`, with the primary context of device 0 current.
struct Cuda {
    fake: FakeCuda,
    context: usize,
}

impl Deref for Cuda {
    type Target = FakeCuda;

    fn deref(&self) -> &FakeCuda {
        &self.fake
    }
}

impl Cuda {
    #[track_caller]
    fn start() -> Cuda {
        let fake = FakeCuda::here();
        assert_eq!(fake.call("cuInit", [0]), 0);
        let mut cuda = Cuda { fake, context: 0 };
        cuda.context = cuda.primary(0);
        cuda.ok("cuCtxSetCurrent", [cuda.context]);
        cuda
    }

    #[track_caller]
    fn ok<const N: usize>(&self, name: &str, words: [usize; N]) {
        assert_eq!(self.call(name, words), 0, "{name}");
    }

    /// Calls `name` with the place of an answer before `words`, and returns the answer.
    #[track_caller]
    fn get<const N: usize>(&self, name: &str, words: [usize; N]) -> usize {
        let mut answer = 0_usize;
        let mut all = [0; 9];
        all[0] = at(&mut answer);
        all[1..=N].copy_from_slice(&words);
        self.ok(name, all);
        answer
    }

    #[track_caller]
    fn primary(&self, device: usize) -> usize {
        self.get("cuDevicePrimaryCtxRetain", [device])
    }

    #[track_caller]
    fn memory(&self, size: usize) -> usize {
        self.get("cuMemAlloc_v2", [size])
    }

    #[track_caller]
    fn pinned(&self, size: usize) -> usize {
        self.get("cuMemHostAlloc", [size, 0])
    }

    #[track_caller]
    fn stream(&self) -> usize {
        self.get("cuStreamCreate", [1])
    }

    #[track_caller]
    fn event(&self) -> usize {
        self.get("cuEventCreate", [2])
    }

    /// A `CUpointer_attribute`.
    fn attribute(&self, attribute: usize, address: usize) -> Result<usize, i32> {
        let mut answer = 0_usize;
        match self.call(
            "cuPointerGetAttribute",
            [at(&mut answer), attribute, address],
        ) {
            0 => Ok(answer),
            code => Err(code),
        }
    }
}

/// `CUresult`s.
const INVALID_VALUE: i32 = 1;
const OUT_OF_MEMORY: i32 = 2;
const NOT_INITIALIZED: i32 = 3;
const NO_DEVICE: i32 = 100;
const INVALID_CONTEXT: i32 = 201;
const INVALID_HANDLE: i32 = 400;
const NOT_READY: i32 = 600;
const ILLEGAL_ADDRESS: i32 = 700;
const CONTEXT_IS_DESTROYED: i32 = 709;
const NOT_SUPPORTED: i32 = 801;
const CAPTURING: i32 = 900;
const CAPTURING_BEFORE: i32 = 906;
