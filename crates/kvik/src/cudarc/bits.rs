//! Types of which any bytes are a value: [`AnyBits`].

use super::driver::{DeviceRepr, ValidAsZeroBits};

/// A type of which any bytes are a value, and whose values have no byte that is none: a file can be read into a slice of it.
///
/// cudarc's `DeviceRepr` is less than that: `bool` has it, and has two values only. What does not have this trait is read
/// through cudarc's `transmute_mut::<u8>`, which asks the caller to answer for the bytes; it needs no trait to be written.
///
/// ```compile_fail
/// # fn f(flags: &mut kvik::cudarc::driver::CudaSlice<bool>) {
/// let _ = kvik::cudarc::target(flags); // bytes other than 0 and 1 are no `bool`
/// # }
/// ```
///
/// # Safety
/// Every pattern of bits of the type's size is a value of it, and it has no padding.
pub unsafe trait AnyBits: DeviceRepr + ValidAsZeroBits {}

macro_rules! any_bits {
    ($($number:ty)*) => {
        $(
            // SAFETY: a number without padding, all of whose patterns are values; those of floats include the NaNs.
            unsafe impl AnyBits for $number {}
        )*
    };
}

any_bits!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

// SAFETY: nothing lies between the elements of an array.
unsafe impl<T: AnyBits, const N: usize> AnyBits for [T; N] {}
