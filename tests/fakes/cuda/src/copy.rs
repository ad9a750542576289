//! Copies and fills. Asynchronous ones find their memory when they are called, and touch it when their stream gets there.

use std::ffi::{c_int, c_uchar, c_uint};
use std::sync::MutexGuard;

use crate::abi::{Answer, Handle, INVALID_VALUE, In, NOT_SUPPORTED, Out};
use crate::context;
use crate::entry::driver;
use crate::place::{Expected, Place};
use crate::queue::{self, Work};
use crate::world::{World, world};

driver! { ENTRIES:
    ready fn cuMemcpyHtoD_v2(to: usize, from: usize, size: usize) {
        copy_and_wait(to, from, size, Direction::ToDevice)
    }

    ready fn cuMemcpyDtoH_v2(to: usize, from: usize, size: usize) {
        copy_and_wait(to, from, size, Direction::ToHost)
    }

    ready fn cuMemcpyDtoD_v2(to: usize, from: usize, size: usize) {
        copy_and_wait(to, from, size, Direction::Within)
    }

    ready fn cuMemcpy(to: usize, from: usize, size: usize) {
        copy_and_wait(to, from, size, Direction::Any)
    }

    ready fn cuMemcpyHtoDAsync_v2(to: usize, from: usize, size: usize, stream: Handle) {
        copy(to, from, size, Direction::ToDevice, stream)
    }

    ready fn cuMemcpyDtoHAsync_v2(to: usize, from: usize, size: usize, stream: Handle) {
        copy(to, from, size, Direction::ToHost, stream)
    }

    ready fn cuMemcpyDtoDAsync_v2(to: usize, from: usize, size: usize, stream: Handle) {
        copy(to, from, size, Direction::Within, stream)
    }

    ready fn cuMemcpyAsync(to: usize, from: usize, size: usize, stream: Handle) {
        copy(to, from, size, Direction::Any, stream)
    }

    ready fn cuMemcpyBatchAsync(
        tos: In<usize>,
        froms: In<usize>,
        sizes: In<usize>,
        count: usize,
        attributes: In<Attributes>,
        indexes: In<usize>,
        attribute_count: usize,
        failed: Out<usize>,
        stream: Handle,
    ) {
        // Which element is wrong is told where one is; any other failure concerns the whole call.
        failed.set_if_wanted(usize::MAX);
        known_since(12080)?;
        let ways = ways(count, &attributes.read(attribute_count)?, &indexes.read(attribute_count)?)?;
        let pieces = Pieces { tos: tos.read(count)?, froms: froms.read(count)?, sizes: sizes.read(count)?, ways };
        batch(pieces, stream, |at| failed.set_if_wanted(at))
    }

    ready fn cuMemcpyBatchAsync_v2(
        tos: In<usize>,
        froms: In<usize>,
        sizes: In<usize>,
        count: usize,
        attributes: In<Attributes>,
        indexes: In<usize>,
        attribute_count: usize,
        stream: Handle,
    ) {
        known_since(13000)?;
        let ways = ways(count, &attributes.read(attribute_count)?, &indexes.read(attribute_count)?)?;
        let pieces = Pieces { tos: tos.read(count)?, froms: froms.read(count)?, sizes: sizes.read(count)?, ways };
        batch(pieces, stream, |_| ())
    }

    ready fn cuMemsetD8_v2(to: usize, byte: c_uchar, size: usize) {
        fill(to, byte, size, 0)
    }

    ready fn cuMemsetD8Async(to: usize, byte: c_uchar, size: usize, stream: Handle) {
        fill(to, byte, size, stream)
    }
}

/// A `CUmemcpyAttributes`: when the source is read, hints about both places, flags.
#[repr(C)]
#[derive(Clone, Copy)]
struct Attributes {
    source_is_read: c_uint,
    from: [c_int; 2],
    to: [c_int; 2],
    flags: c_uint,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToDevice,
    ToHost,
    Within,
    Any,
}

struct Pieces {
    tos: Vec<usize>,
    froms: Vec<usize>,
    sizes: Vec<usize>,
    /// For each piece, when its source is read.
    ways: Vec<c_uint>,
}

/// The source is read in the order of the stream, or before the call returns.
const IN_STREAM_ORDER: c_uint = 1;
const DURING_THE_CALL: c_uint = 2;
const WHENEVER: c_uint = 3;

fn find(
    world: &mut World,
    (to, from, size): (usize, usize, usize),
    direction: Direction,
) -> Answer<(Place, Place)> {
    let expect = |device: bool| {
        if device {
            Expected::Device
        } else {
            Expected::Anything
        }
    };
    let to_device = matches!(direction, Direction::ToDevice | Direction::Within);
    let from_device = matches!(direction, Direction::ToHost | Direction::Within);
    let to = Place::find(world, to, size, expect(to_device))?;
    let from = Place::find(world, from, size, expect(from_device))?;
    Ok((to, from))
}

/// A copy that has happened when the call returns, in the order of the default stream.
fn copy_and_wait(to: usize, from: usize, size: usize, direction: Direction) -> Answer {
    let mut world = world();
    let stream = queue::meant(&mut world, 0)?;
    if size == 0 {
        return Ok(());
    }
    let pieces = vec![find(&mut world, (to, from, size), direction)?];
    submit(world, stream, pieces, true)
}

fn copy(to: usize, from: usize, size: usize, direction: Direction, stream: Handle) -> Answer {
    let mut world = world();
    let stream = queue::meant(&mut world, stream)?;
    if size == 0 {
        return Ok(());
    }
    let (to, from) = find(&mut world, (to, from, size), direction)?;
    note_strays(&mut world, stream, &to, &from)?;
    // As documented: a copy to pageable memory is over when the call returns, one from it has read it.
    let wait = to.is_pageable();
    submit(world, stream, vec![(to, from.staged())], wait)
}

fn batch(pieces: Pieces, stream: Handle, failed: impl Fn(usize)) -> Answer {
    let mut world = world();
    // The default stream that all threads share is not taken here.
    if stream <= 1 {
        return Err(INVALID_VALUE);
    }
    let stream = queue::meant(&mut world, stream)?;
    let mut found = Vec::with_capacity(pieces.tos.len());
    let mut wait = false;
    for (at, (to, from)) in pieces.tos.into_iter().zip(pieces.froms).enumerate() {
        let size = pieces.sizes[at];
        let one = match size {
            0 => Err(INVALID_VALUE),
            size => find(&mut world, (to, from, size), Direction::Any),
        };
        let (to, from) = one.inspect_err(|_| failed(at))?;
        note_strays(&mut world, stream, &to, &from)?;
        wait |= to.is_pageable();
        let from = if pieces.ways[at] == DURING_THE_CALL {
            from.staged()
        } else {
            from
        };
        found.push((to, from));
    }
    submit(world, stream, found, wait)
}

fn submit(
    mut world: MutexGuard<'static, World>,
    stream: Handle,
    pieces: Vec<(Place, Place)>,
    wait: bool,
) -> Answer {
    let seq = queue::submit(&mut world, stream, Work::Copy(pieces))?;
    if wait {
        return queue::wait_until(world, stream, seq).map(drop);
    }
    Ok(())
}

fn fill(to: usize, byte: u8, size: usize, stream: Handle) -> Answer {
    let mut world = world();
    let stream = queue::meant(&mut world, stream)?;
    if size == 0 {
        return Ok(());
    }
    let to = Place::find(&mut world, to, size, Expected::Device)?;
    queue::submit(&mut world, stream, Work::Fill(to, byte)).map(drop)
}

/// Counts copies on a stream of another device than that of the memory. They work, by a way round.
fn note_strays(world: &mut World, stream: Handle, to: &Place, from: &Place) -> Answer {
    let of = queue::context_of(world, stream)?;
    let device = world.context(of)?.device;
    let stray = [to, from]
        .into_iter()
        .filter_map(Place::device)
        .any(|of| of != device);
    world.strays += u64::from(stray);
    Ok(())
}

/// The element `i` has the attributes whose index is the last that is not above `i`.
fn ways(count: usize, attributes: &[Attributes], indexes: &[usize]) -> Answer<Vec<c_uint>> {
    let rising = indexes.first() == Some(&0) && indexes.is_sorted_by(|one, next| one < next);
    let inside = indexes.last().is_some_and(|last| *last < count);
    let known = |it: &Attributes| {
        matches!(
            it.source_is_read,
            IN_STREAM_ORDER | DURING_THE_CALL | WHENEVER
        )
    };
    if !rising || !inside || !attributes.iter().all(known) {
        return Err(INVALID_VALUE);
    }
    let way = |place| {
        let after = indexes.partition_point(|index| *index <= place);
        attributes[after - 1].source_is_read
    };
    Ok((0..count).map(way).collect())
}

fn known_since(version: i32) -> Answer {
    let world = world();
    context::current(&world)?;
    // A driver of that age lacks the symbol; whoever calls it has not asked for the version.
    if world.settings.version >= version {
        Ok(())
    } else {
        Err(NOT_SUPPORTED)
    }
}
