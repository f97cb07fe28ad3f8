//! The elements of buffers, and the ranks that buffers have as `ndarray` arrays.

use ndarray::Dimension;

/// Plain data that a buffer can hold: zeroed bytes are a value, no byte is padding, and values can be copied.
///
/// Every type that is [`bytemuck::NoUninit`], [`bytemuck::Zeroable`] and [`bytemuck::CheckedBitPattern`] and
/// can be shared between threads is an element: the number types, arrays of these, structures that derive
/// `Pod`, `bool` and `char`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of a buffer",
    label = "not plain data",
    note = "elements are numbers, arrays of numbers, `bool`, and structures: `#[derive(Clone, Copy, Pod, Zeroable)] #[repr(C)]` \
            from `bytemuck`, without padding"
)]
pub trait Element:
    bytemuck::NoUninit + bytemuck::Zeroable + bytemuck::CheckedBitPattern + Send + Sync
{
}

// The message is that of `Element`, which says what to do.
#[diagnostic::do_not_recommend]
impl<T: bytemuck::NoUninit + bytemuck::Zeroable + bytemuck::CheckedBitPattern + Send + Sync> Element for T {}

/// The ranks that have an `ndarray` shape: `Rank: Shape<2>`.
#[derive(Debug)]
pub struct Rank;

/// The `ndarray` type for `D` dimensions.
pub trait Shape<const D: usize> {
    /// `ndarray::Ix0` to `ndarray::Ix3`.
    type Dim: Dimension;

    /// The shape of an array with this extent.
    fn shape(extent: [usize; D]) -> Self::Dim;
}

impl Shape<0> for Rank {
    type Dim = ndarray::Ix0;
    fn shape(_: [usize; 0]) -> Self::Dim {
        ndarray::Ix0()
    }
}

impl Shape<1> for Rank {
    type Dim = ndarray::Ix1;
    fn shape([n]: [usize; 1]) -> Self::Dim {
        ndarray::Ix1(n)
    }
}

impl Shape<2> for Rank {
    type Dim = ndarray::Ix2;
    fn shape([rows, cols]: [usize; 2]) -> Self::Dim {
        ndarray::Ix2(rows, cols)
    }
}

impl Shape<3> for Rank {
    type Dim = ndarray::Ix3;
    fn shape([planes, rows, cols]: [usize; 3]) -> Self::Dim {
        ndarray::Ix3(planes, rows, cols)
    }
}
