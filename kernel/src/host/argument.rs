//! What an operation computes with.

use super::gathered::Gathered;
use crate::number::{Number, Scalar, Slice, SliceMut};

/// An input of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Argument<'a, T> {
    /// An element for each point.
    Block(&'a [T]),
    /// One for all points.
    Same(T),
}

/// The elements of a load, for the points of a block.
#[derive(Clone, Copy, Debug)]
pub(super) enum Elements {
    /// One for each point, one after the other in a slice of the operand: the number of the slice, and which
    /// of its elements is the first.
    Slice { number: u32, from: usize },
    /// One for all points.
    Same(Scalar),
    /// One for each point, which were gathered.
    Gathered,
}

/// The elements of all loads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded<'a> {
    pub(super) elements: &'a [Elements],
    /// The slices of operands. Several loads may share one.
    pub(super) slices: &'a [Slice<'a>],
    /// Those that were gathered.
    pub(super) gathered: &'a [Gathered],
}

impl<'a> Loaded<'a> {
    /// The elements of a load, as numbers of a type.
    #[inline(always)]
    pub(super) fn argument<T: Number>(self, load: u32) -> Argument<'a, T> {
        match self.elements[load as usize] {
            Elements::Slice { number, from } => {
                Argument::Block(&numbers(self.slices[number as usize])[from..])
            }
            Elements::Same(value) => Argument::Same(number(value)),
            Elements::Gathered => Argument::Block(numbers(self.gathered[load as usize].slice(0))),
        }
    }
}

/// The slice, as numbers of a type.
#[inline(always)]
pub(super) fn numbers<T: Number>(slice: Slice<'_>) -> &[T] {
    T::of_slice(slice).expect("an operand has the type that it was recorded with")
}

/// The slice, as numbers of a type.
#[inline(always)]
pub(super) fn numbers_mut<T: Number>(slice: SliceMut<'_>) -> &mut [T] {
    T::of_slice_mut(slice).expect("an operand has the type that it was recorded with")
}

/// The number, as one of a type.
#[inline(always)]
pub(super) fn number<T: Number>(scalar: Scalar) -> T {
    T::of_scalar(scalar).expect("a literal has the type that it was recorded with")
}
