//! Modules and kernels. Nothing is compiled: a kernel is known by its name, and does what the text under that name does on a
//! device.
//!
//! The first launch of a kernel loads it, as drivers do unless they are told to load eagerly: it waits for all that is queued
//! in its context, and meanwhile every call of another thread waits for it.

use std::ffi::c_uint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::abi::{
    Answer, Handle, INVALID_HANDLE, INVALID_PTX, INVALID_VALUE, In, NOT_FOUND, Out, Text,
};
use crate::context;
use crate::entry::driver;
use crate::place::{Expected, Place};
use crate::queue::{self, Work};
use crate::world::{World, changed, wait, world};

pub(crate) struct Module {
    pub(crate) context: Handle,
    text: String,
}

pub(crate) struct Function {
    module: Handle,
    does: Does,
    loaded: bool,
}

#[derive(Clone, Copy)]
enum Does {
    /// `spin(ticks)`: takes so many nanoseconds.
    Spin,
    /// `differ(one, other, bytes, count)`: adds to the word `count` how many bytes differ.
    Differ,
}

/// A kernel with its arguments.
pub(crate) enum Kernel {
    Spin(Duration),
    Differ {
        one: Place,
        other: Place,
        count: Place,
    },
}

driver! { ENTRIES:
    ready fn cuModuleLoadData(module: Out<Handle>, image: Text) {
        let mut world = world();
        let context = context::current(&world)?;
        let text = image.read()?;
        if !text.contains(".version") || !text.contains(".target") {
            return Err(INVALID_PTX);
        }
        let handle = world.handle();
        world.modules.insert(handle, Module { context, text });
        module.set(handle)
    }

    ready fn cuModuleUnload(module: Handle) {
        let mut world = world();
        let context = module_of(&mut world, module)?.context;
        world = queue::drain(world, context)?;
        world.modules.remove(&module);
        world.functions.retain(|_, function| function.module != module);
        Ok(())
    }

    ready fn cuModuleGetFunction(function: Out<Handle>, module: Handle, name: Text) {
        let mut world = world();
        let name = name.read()?;
        let declared = format!(".entry {name}(");
        if !module_of(&mut world, module)?.text.contains(&declared) {
            return Err(NOT_FOUND);
        }
        let does = match name.as_str() {
            "spin" => Does::Spin,
            "differ" => Does::Differ,
            _ => {
                world.fault(format!("the fake cannot run a kernel {name}"));
                return Err(NOT_FOUND);
            }
        };
        let handle = world.handle();
        world.functions.insert(handle, Function { module, does, loaded: false });
        function.set(handle)
    }

    ready fn cuLaunchKernel(
        function: Handle,
        blocks_x: c_uint,
        blocks_y: c_uint,
        blocks_z: c_uint,
        threads_x: c_uint,
        threads_y: c_uint,
        threads_z: c_uint,
        _shared: c_uint,
        stream: Handle,
        arguments: In<In<u64>>,
        _extra: usize,
    ) {
        let shape = [blocks_x, blocks_y, blocks_z, threads_x, threads_y, threads_z];
        if shape.contains(&0) || threads_x > 1024 {
            return Err(INVALID_VALUE);
        }
        let mut world = world();
        let stream = queue::meant(&mut world, stream)?;
        let known = world.functions.get(&function).ok_or(INVALID_HANDLE)?;
        let (does, module, loaded) = (known.does, known.module, known.loaded);
        let context = module_of(&mut world, module)?.context;
        if queue::context_of(&world, stream)? != context {
            return Err(INVALID_HANDLE);
        }
        if !loaded {
            while world.loader.is_some() {
                world = wait(world);
            }
            world.loader = Some(thread::current().id());
            LOADS.store(true, Ordering::Release);
            let drained = queue::drain(world, context).map(drop);
            world = crate::world::world();
            world.loader = None;
            changed();
            drained?;
            if let Some(function) = world.functions.get_mut(&function) {
                function.loaded = true;
            }
        }
        let kernel = does.with(&mut world, arguments)?;
        queue::submit(&mut world, stream, Work::Run(kernel)).map(drop)
    }
}

/// Whether any kernel was ever loaded, so that calls look no further while none was.
static LOADS: AtomicBool = AtomicBool::new(false);

/// Waits while another thread loads a kernel.
pub(crate) fn wait_for_loader() {
    if !LOADS.load(Ordering::Acquire) {
        return;
    }
    let mut world = world();
    while world.loader.is_some_and(|by| by != thread::current().id()) {
        world = wait(world);
    }
}

fn module_of(world: &mut World, module: Handle) -> Answer<&Module> {
    if !world.modules.contains_key(&module) {
        world.fault(format!("{module:#x} is no module"));
    }
    world.modules.get(&module).ok_or(INVALID_HANDLE)
}

impl Does {
    fn with(self, world: &mut World, arguments: In<In<u64>>) -> Answer<Kernel> {
        let number = |argument: In<u64>| Ok(argument.read(1)?[0]);
        match self {
            Does::Spin => {
                let nanoseconds = number(arguments.read(1)?[0])?;
                Ok(Kernel::Spin(Duration::from_nanos(nanoseconds)))
            }
            Does::Differ => {
                let given: Answer<Vec<u64>> = arguments.read(4)?.into_iter().map(number).collect();
                let given: Vec<usize> = given?.into_iter().map(|it| it as usize).collect();
                let [one, other, bytes, count] = given[..] else {
                    return Err(INVALID_VALUE);
                };
                Ok(Kernel::Differ {
                    one: Place::find(world, one, bytes, Expected::Device)?,
                    other: Place::find(world, other, bytes, Expected::Device)?,
                    count: Place::find(world, count, 4, Expected::Device)?,
                })
            }
        }
    }
}

impl Kernel {
    pub(crate) fn perform(&self) -> Answer {
        match self {
            Kernel::Spin(time) => thread::sleep(*time),
            Kernel::Differ { one, other, count } => {
                let differences = one.differences(other)?;
                count.store(count.load()?.wrapping_add(differences))?;
            }
        }
        Ok(())
    }
}
