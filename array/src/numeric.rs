//! The numbers that arrays have.

use crate::random::draw::Draw;
use anabranch::{interface::ShaderElement, recorded::Number};
use std::cmp::Ordering;

mod sealed {
    pub trait Sealed {}
}

/// A number that arrays have: `f32`, `f64`, `i32`, `u32`, `i64` or `u64`.
pub trait Numeric: ShaderElement + Number + Draw + sealed::Sealed {
    /// Whether it is a floating-point number.
    #[doc(hidden)]
    const IS_FLOAT: bool;

    /// The order of [`Array::sort`](crate::Array::sort): that of the numbers; of floating-point numbers
    /// `-0.0` comes before `0.0`, and NaN comes last.
    fn order(&self, other: &Self) -> Ordering;

    /// `c = a · b` for `c` of some rows and `n` columns, in row-major order; `inner` is the number of columns
    /// of `a`.
    #[doc(hidden)]
    fn multiply(a: &[Self], b: &[Self], c: &mut [Self], inner: usize, n: usize);
}

macro_rules! floats {
    ($($number:ident)*) => {$(
        impl sealed::Sealed for $number {}

        impl Numeric for $number {
            const IS_FLOAT: bool = true;

            #[inline]
            fn order(&self, other: &Self) -> Ordering {
                self.is_nan().cmp(&other.is_nan()).then_with(|| self.total_cmp(other))
            }

            fn multiply(a: &[Self], b: &[Self], c: &mut [Self], inner: usize, n: usize) {
                use ndarray::{ArrayView2, ArrayViewMut2, linalg::general_mat_mul};
                let rows = c.len() / n;
                let fits = "the slices have the elements of their matrices";
                let a = ArrayView2::from_shape((rows, inner), a).expect(fits);
                let b = ArrayView2::from_shape((inner, n), b).expect(fits);
                let mut c = ArrayViewMut2::from_shape((rows, n), c).expect(fits);
                general_mat_mul(1.0, &a, &b, 0.0, &mut c);
            }
        }
    )*};
}

floats!(f32 f64);

macro_rules! integers {
    ($($number:ident)*) => {$(
        impl sealed::Sealed for $number {}

        impl Numeric for $number {
            const IS_FLOAT: bool = false;

            #[inline]
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }

            fn multiply(a: &[Self], b: &[Self], c: &mut [Self], inner: usize, n: usize) {
                c.fill(0);
                for (row, c) in c.chunks_mut(n).enumerate() {
                    for (k, b) in b.chunks(n).enumerate() {
                        let a = a[row * inner + k];
                        c.iter_mut().zip(b).for_each(|(c, b)| *c = c.wrapping_add(a.wrapping_mul(*b)));
                    }
                }
            }
        }
    )*};
}

integers!(i32 u32 i64 u64);
