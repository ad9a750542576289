//! Contexts: primary ones, which are counted, others, and the stack of each thread.

use std::cell::RefCell;
use std::ffi::{c_int, c_uint};

use crate::abi::{Answer, Handle, INVALID_CONTEXT, INVALID_VALUE, Out};
use crate::entry::driver;
use crate::world::{World, world};
use crate::{capture, queue};

thread_local! {
    /// The current context is the last one.
    static STACK: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

/// The current context of this thread, which must be there and work.
pub(crate) fn current(world: &World) -> Answer<Handle> {
    let handle = top().ok_or(INVALID_CONTEXT)?;
    world.context(handle)?;
    Ok(handle)
}

fn top() -> Option<Handle> {
    STACK.with_borrow(|stack| stack.last().copied())
}

/// As with the real driver, one that was destroyed can be made current; what is called in it then fails.
fn existed(handle: Handle) -> Answer {
    let world = world();
    let known = world.contexts.get(&handle);
    known.map(drop).ok_or(INVALID_CONTEXT)
}

driver! { ENTRIES:
    ready fn cuDevicePrimaryCtxRetain(context: Out<Handle>, device: c_int) {
        let mut world = world();
        let known = world.device(device)?.primary;
        let primary = if known == 0 { world.add_context(device) } else { known };
        let place = world.device(device)?;
        place.primary = primary;
        place.retained += 1;
        let id = world.id();
        if let Some(context) = world.contexts.get_mut(&primary).filter(|it| !it.alive) {
            context.alive = true;
            context.id = id;
        }
        context.set(primary)
    }

    ready fn cuDevicePrimaryCtxRelease_v2(device: c_int) {
        let mut world = world();
        let place = world.device(device)?;
        let Some(left) = place.retained.checked_sub(1) else {
            world.fault("a primary context was released more often than retained".to_owned());
            return Err(INVALID_CONTEXT);
        };
        let primary = place.primary;
        if left == 0 {
            // Its work is waited for.
            world = queue::settle(world, primary);
            world.end_context(primary);
        }
        world.device(device)?.retained = left;
        Ok(())
    }

    ready fn cuDevicePrimaryCtxGetState(device: c_int, flags: Out<c_uint>, active: Out<c_int>) {
        let retained = world().device(device)?.retained;
        flags.set(0)?;
        active.set(c_int::from(retained > 0))
    }

    ready fn cuDevicePrimaryCtxReset_v2(device: c_int) {
        let mut world = world();
        let primary = world.device(device)?.primary;
        if world.contexts.get(&primary).is_some_and(|it| it.alive) {
            world.end_context(primary);
        }
        Ok(())
    }

    ready fn cuCtxCreate_v2(context: Out<Handle>, _flags: c_uint, device: c_int) {
        create(context, device)
    }

    ready fn cuCtxCreate_v3(
        context: Out<Handle>,
        _params: usize,
        _count: c_int,
        _flags: c_uint,
        device: c_int,
    ) {
        create(context, device)
    }

    ready fn cuCtxCreate_v4(context: Out<Handle>, _params: usize, _flags: c_uint, device: c_int) {
        create(context, device)
    }

    ready fn cuCtxDestroy_v2(context: Handle) {
        let mut world = world();
        let alive = world.contexts.get(&context).is_some_and(|it| it.alive);
        let primary = world.devices.iter().any(|device| device.primary == context);
        if !alive || primary {
            world.fault("cuCtxDestroy of what is no context of cuCtxCreate".to_owned());
            return Err(INVALID_CONTEXT);
        }
        world = queue::settle(world, context);
        world.end_context(context);
        STACK.with_borrow_mut(|stack| {
            if stack.last() == Some(&context) {
                stack.pop();
            }
        });
        Ok(())
    }

    ready fn cuCtxGetCurrent(context: Out<Handle>) {
        context.set(top().unwrap_or(0))
    }

    ready fn cuCtxSetCurrent(context: Handle) {
        if context != 0 {
            existed(context)?;
        }
        STACK.with_borrow_mut(|stack| {
            stack.pop();
            stack.extend((context != 0).then_some(context));
        });
        Ok(())
    }

    ready fn cuCtxPushCurrent_v2(context: Handle) {
        existed(context)?;
        STACK.with_borrow_mut(|stack| stack.push(context));
        Ok(())
    }

    ready fn cuCtxPopCurrent_v2(context: Out<Handle>) {
        let popped = STACK.with_borrow_mut(Vec::pop).ok_or(INVALID_CONTEXT)?;
        context.set_if_wanted(popped);
        Ok(())
    }

    ready fn cuCtxGetDevice(device: Out<c_int>) {
        let world = world();
        let current = current(&world)?;
        device.set(world.context(current)?.device)
    }

    ready fn cuCtxGetId(context: Handle, id: Out<u64>) {
        let world = world();
        let asked = if context == 0 { current(&world)? } else { context };
        id.set(world.context(asked)?.id)
    }

    ready fn cuCtxSynchronize() {
        let mut world = world();
        let current = current(&world)?;
        capture::check_context(&mut world, current)?;
        queue::drain(world, current).map(drop)
    }
}

fn create(context: Out<Handle>, device: c_int) -> Answer {
    let mut world = world();
    world.device(device)?;
    let handle = world.add_context(device);
    context.set(handle).map_err(|_| INVALID_VALUE)?;
    STACK.with_borrow_mut(|stack| stack.push(handle));
    Ok(())
}
