//! The element types that a frame can have.

/// An element type that HDF5 and its readers know: `f32`, `f64`, or an integer of 8 to 64 bits.
///
/// Files hold elements in the byte order of the machine that writes them.
pub trait Element: bytemuck::Pod + Send + Sync + sealed::Native {
    /// The type's name in messages, as in `f32`.
    const NAME: &'static str;
}

mod sealed {
    /// Keeps HDF5's own type trait out of the public interface.
    pub trait Native: hdf5::H5Type {}
}

macro_rules! elements {
    ($($t:ident)*) => {$(
        impl sealed::Native for $t {}
        impl Element for $t {
            const NAME: &'static str = stringify!($t);
        }
    )*};
}
elements!(f32 f64 i8 i16 i32 i64 u8 u16 u32 u64);
