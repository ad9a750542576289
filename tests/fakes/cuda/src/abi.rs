//! What crosses the C interface: status codes, handles, and pointers of the caller that are checked before use.

/// A `CUresult`.
pub(crate) type Code = i32;

/// What the inside of a call returns; `Err` becomes the status that its caller sees.
pub(crate) type Answer<T = ()> = Result<T, Code>;

/// A `CUcontext`, `CUstream`, `CUevent` or `CUmemoryPool`. Never dereferenced, by us or by anybody.
pub(crate) type Handle = usize;

pub(crate) const SUCCESS: Code = 0;
pub(crate) const INVALID_VALUE: Code = 1;
pub(crate) const OUT_OF_MEMORY: Code = 2;
pub(crate) const NOT_INITIALIZED: Code = 3;
pub(crate) const NO_DEVICE: Code = 100;
pub(crate) const INVALID_DEVICE: Code = 101;
pub(crate) const INVALID_CONTEXT: Code = 201;
pub(crate) const INVALID_HANDLE: Code = 400;
pub(crate) const NOT_FOUND: Code = 500;
pub(crate) const NOT_READY: Code = 600;
pub(crate) const ILLEGAL_ADDRESS: Code = 700;
pub(crate) const CONTEXT_IS_DESTROYED: Code = 709;
pub(crate) const HOST_MEMORY_ALREADY_REGISTERED: Code = 712;
pub(crate) const HOST_MEMORY_NOT_REGISTERED: Code = 713;
pub(crate) const NOT_PERMITTED: Code = 800;
pub(crate) const NOT_SUPPORTED: Code = 801;
pub(crate) const STREAM_CAPTURE_UNSUPPORTED: Code = 900;
pub(crate) const STREAM_CAPTURE_IMPLICIT: Code = 906;
pub(crate) const UNKNOWN: Code = 999;

/// A pointer through which a call hands something back. Nobody in this crate makes one: it comes from a caller of the C
/// interface, who vouches, as for the real library, that it is null or good for what the call stores through it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Stores `value`; null is an invalid argument.
    pub(crate) fn set(self, value: T) -> Answer {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: not null, so by the caller's promise good for one `T`. Alignment is not asked for: attributes of
        // different widths are stored through untyped pointers.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Stores `value`, and returns what the caller had put there; null is an invalid argument.
    pub(crate) fn exchange(self, value: T) -> Answer<T>
    where
        T: Copy,
    {
        let before = In(self.0.cast_const()).read(1)?;
        self.set(value)?;
        Ok(before[0])
    }

    /// Stores `value`, unless the caller does not want it.
    pub(crate) fn set_if_wanted(self, value: T) {
        // Null is the one failure, and here it means that nobody asks.
        let _ = self.set(value);
    }

    /// Stores the elements of `values` one after the other.
    pub(crate) fn fill(self, values: impl IntoIterator<Item = T>) -> Answer {
        for (place, value) in values.into_iter().enumerate() {
            Out(self.0.wrapping_add(place)).set(value)?;
        }
        Ok(())
    }

    /// The same pointer, for something of another width.
    pub(crate) fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }
}

/// A pointer at `n` values that a call reads, with the promise that [`Out`] describes.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// Copies `count` values; null is an invalid argument.
    pub(crate) fn read(self, count: usize) -> Answer<Vec<T>> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        let one = |place| {
            // SAFETY: not null, so by the caller's promise good for `count` values.
            unsafe { self.0.wrapping_add(place).read_unaligned() }
        };
        Ok((0..count).map(one).collect())
    }
}

/// A text of the caller, with the promise that [`Out`] describes: null, or ended by a zero.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Text(*const libc::c_char);

impl Text {
    pub(crate) fn read(self) -> Answer<String> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: not null, so by the caller's promise ended by a zero.
        let text = unsafe { std::ffi::CStr::from_ptr(self.0) };
        Ok(text.to_string_lossy().into_owned())
    }
}

/// Writes `text` and a zero into the caller's memory of `len` bytes, cut to fit; returns how long it would like to be.
pub(crate) fn hand_out(text: &str, to: Out<u8>, len: usize) -> usize {
    if let Some(most) = len.checked_sub(1) {
        let cut = text.bytes().take(most).chain([0]);
        // A caller that passes null asks for the length alone.
        let _ = to.fill(cut);
    }
    text.len()
}
