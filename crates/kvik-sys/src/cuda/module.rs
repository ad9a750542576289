//! Code for the device: modules, and the kernels in them.

use std::ffi::{CStr, c_uint, c_void};
use std::ptr;

use super::Cuda;
use crate::handle::{Function, Module, Stream};
use crate::raw::cuda::{CUfunction, CUmodule};
use crate::status::{CallError, CudaStatus};

impl Cuda {
    /// Loads a module into the current context from text in the language PTX, which the driver compiles for the device.
    ///
    /// With lazy loading, which is what drivers do unless the environment says otherwise, kernels are loaded later, at the
    /// latest when they are launched first. Whenever it is, it may wait for work that is queued in the context.
    ///
    /// # Errors
    ///
    /// The driver's status, also for text that does not compile; or [`CallError::Unsupported`].
    ///
    /// # Safety
    ///
    /// 1. The image is text. The driver looks behind the end of one that begins as other kinds of image do.
    pub unsafe fn module_load_data(&self, image: &CStr) -> Result<Module, CallError<CudaStatus>> {
        let function = self.table().cuModuleLoadData?;
        let mut module: CUmodule = ptr::null_mut();
        // SAFETY: point 1; text ends with a NUL; `module` is writable for the call.
        CudaStatus::check(unsafe { function(&raw mut module, image.as_ptr().cast()) })?;
        Module::take(module).ok_or(CudaStatus::INVALID_HANDLE.into())
    }

    /// Takes a module away.
    ///
    /// # Errors
    ///
    /// The driver's status, or [`CallError::Unsupported`].
    ///
    /// # Safety
    ///
    /// 1. The module is alive (rule 1), its context is current, and neither it nor its kernels are used any more (rule 3).
    pub unsafe fn module_unload(&self, module: Module) -> Result<(), CallError<CudaStatus>> {
        let function = self.table().cuModuleUnload?;
        // SAFETY: point 1.
        CudaStatus::check(unsafe { function(module.give()) })?;
        Ok(())
    }

    /// The kernel of this name.
    ///
    /// # Errors
    ///
    /// The driver's status, `NOT_FOUND` where the module has no such kernel; or [`CallError::Unsupported`].
    ///
    /// # Safety
    ///
    /// 1. The module is alive (rule 1).
    pub unsafe fn module_get_function(
        &self,
        module: Module,
        name: &CStr,
    ) -> Result<Function, CallError<CudaStatus>> {
        let get = self.table().cuModuleGetFunction?;
        let mut function: CUfunction = ptr::null_mut();
        // SAFETY: point 1; the name ends with a NUL; `function` is writable for the call.
        CudaStatus::check(unsafe { get(&raw mut function, module.give(), name.as_ptr()) })?;
        Function::take(function).ok_or(CudaStatus::INVALID_HANDLE.into())
    }

    /// Queues a kernel: `blocks` of `threads` each, both in one dimension.
    ///
    /// The arguments are taken before the call returns: each is a pointer to a value of the type that the kernel declares.
    ///
    /// # Errors
    ///
    /// The driver's status, or [`CallError::Unsupported`].
    ///
    /// # Safety
    ///
    /// 1. The module of the kernel and the stream are alive (rule 1), and of one context.
    /// 2. There is an argument for each that the kernel declares, in their order, readable as that type.
    /// 3. What the kernel does with memory, by its arguments, keeps to rules 2 and 3.
    pub unsafe fn launch_kernel(
        &self,
        kernel: Function,
        (blocks, threads): (u32, u32),
        stream: Stream,
        arguments: &mut [*mut c_void],
    ) -> Result<(), CallError<CudaStatus>> {
        let launch = self.table().cuLaunchKernel?;
        let (blocks, threads): (c_uint, c_uint) = (blocks, threads);
        // SAFETY: points 1 to 3; no shared memory, and no second form of arguments.
        CudaStatus::check(unsafe {
            launch(
                kernel.give(),
                blocks,
                1,
                1,
                threads,
                1,
                1,
                0,
                stream.give(),
                arguments.as_mut_ptr(),
                ptr::null_mut(),
            )
        })?;
        Ok(())
    }
}
