//! Vectors of floats, of the length that the instructions have.

use crate::number::Number;
use pulp::Simd;

/// A float, and the vectors of it that a set of instructions has.
pub(super) trait Lanes: Number {
    /// A vector.
    type Vector<S: Simd>: Copy;
    /// The vectors of a slice, without the rest of it that fills none.
    fn vectors<S: Simd>(slice: &[Self]) -> &[Self::Vector<S>];
    fn vectors_mut<S: Simd>(slice: &mut [Self]) -> &mut [Self::Vector<S>];
    /// A vector that begins with the elements of a slice.
    fn partial<S: Simd>(simd: S, slice: &[Self]) -> Self::Vector<S>;
    /// Copies as many elements as the slice has.
    fn store_partial<S: Simd>(simd: S, slice: &mut [Self], vector: Self::Vector<S>);
    fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S>;
    fn add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn sub<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn mul<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
}

macro_rules! lanes {
    ($float:ident $vectors:ident $as:ident $as_mut:ident $partial:ident $store:ident $splat:ident $add:ident $sub:ident $mul:ident) => {
        impl Lanes for $float {
            type Vector<S: Simd> = S::$vectors;

            #[inline(always)]
            fn vectors<S: Simd>(slice: &[Self]) -> &[Self::Vector<S>] {
                S::$as(slice).0
            }

            #[inline(always)]
            fn vectors_mut<S: Simd>(slice: &mut [Self]) -> &mut [Self::Vector<S>] {
                S::$as_mut(slice).0
            }

            #[inline(always)]
            fn partial<S: Simd>(simd: S, slice: &[Self]) -> Self::Vector<S> {
                simd.$partial(slice)
            }

            #[inline(always)]
            fn store_partial<S: Simd>(simd: S, slice: &mut [Self], vector: Self::Vector<S>) {
                simd.$store(slice, vector);
            }

            #[inline(always)]
            fn splat<S: Simd>(simd: S, value: Self) -> Self::Vector<S> {
                simd.$splat(value)
            }

            #[inline(always)]
            fn add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S> {
                simd.$add(a, b)
            }

            #[inline(always)]
            fn sub<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S> {
                simd.$sub(a, b)
            }

            #[inline(always)]
            fn mul<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S> {
                simd.$mul(a, b)
            }
        }
    };
}

lanes!(f32 f32s as_simd_f32s as_mut_simd_f32s partial_load_f32s partial_store_f32s splat_f32s add_f32s sub_f32s mul_f32s);
lanes!(f64 f64s as_simd_f64s as_mut_simd_f64s partial_load_f64s partial_store_f64s splat_f64s add_f64s sub_f64s mul_f64s);
