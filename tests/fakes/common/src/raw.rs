//! Pointers that come from a caller of the C interface, checked for null before use.

/// What a null pointer is answered with where the call needs one: CUDA's code for an invalid argument, which other
/// libraries translate into theirs.
pub const NULL: i32 = 1;

/// A pointer through which a call hands something back. No Rust code makes one: it comes from a caller of the C
/// interface, who vouches, as for the real library, that it is null or good for what the call stores through it.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Stores `value`; null is refused.
    pub fn set(self, value: T) -> Result<(), i32> {
        if self.0.is_null() {
            return Err(NULL);
        }
        // SAFETY: not null, so by the caller's promise good for one `T`. Alignment is not asked for: attributes of
        // different widths are stored through untyped pointers.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Reads what the caller put there before.
    pub fn get(self) -> Result<T, i32>
    where
        T: Copy,
    {
        Ok(In(self.0.cast_const()).read(1)?[0])
    }

    /// Stores `value`, unless the caller does not want it.
    pub fn set_if_wanted(self, value: T) {
        // Null is the one failure, and here it means that nobody asks.
        let _ = self.set(value);
    }

    /// Stores the elements of `values` one after the other.
    pub fn fill(self, values: impl IntoIterator<Item = T>) -> Result<(), i32> {
        for (place, value) in values.into_iter().enumerate() {
            Out(self.0.wrapping_add(place)).set(value)?;
        }
        Ok(())
    }

    /// The same pointer, for something of another width.
    pub fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }
}

/// A pointer at `n` values that a call reads, with the promise that [`Out`] describes.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// Whether the caller passed nothing.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Copies `count` values; null is refused.
    pub fn read(self, count: usize) -> Result<Vec<T>, i32> {
        if self.0.is_null() {
            return Err(NULL);
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
#[derive(Debug, Clone, Copy)]
pub struct Text(*const libc::c_char);

impl Text {
    /// Reads it, with a mark in place of what is not UTF-8.
    pub fn read(self) -> Result<String, i32> {
        if self.0.is_null() {
            return Err(NULL);
        }
        // SAFETY: not null, so by the caller's promise ended by a zero.
        let text = unsafe { std::ffi::CStr::from_ptr(self.0) };
        Ok(text.to_string_lossy().into_owned())
    }
}

/// Writes `text` and a zero into the caller's memory of `len` bytes, cut to fit; returns how long it would like to be.
pub fn hand_out(text: &str, to: Out<u8>, len: usize) -> usize {
    if let Some(most) = len.checked_sub(1) {
        let cut = text.bytes().take(most).chain([0]);
        // A caller that passes null asks for the length alone.
        let _ = to.fill(cut);
    }
    text.len()
}
