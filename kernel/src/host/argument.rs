//! What an operation computes with.

use crate::number::{Number, Scalar, Slice};

/// An input of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Argument<'a, T> {
    /// An element for each point.
    Block(&'a [T]),
    /// One for all points.
    Same(T),
}

/// The slice, as numbers of a type.
#[inline(always)]
pub(super) fn numbers<T: Number>(slice: Slice<'_>) -> &[T] {
    T::of_slice(slice).expect("an operand has the type that it was recorded with")
}

/// The number, as one of a type.
#[inline(always)]
pub(super) fn number<T: Number>(scalar: Scalar) -> T {
    T::of_scalar(scalar).expect("a literal has the type that it was recorded with")
}
