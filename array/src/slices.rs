//! The elements of the views of a kernel that has one chunk, as slices.

use anabranch::{Element, ReadView, WriteView};

const CONTIGUOUS: &str = "the first elements of a buffer with one dimension are contiguous";

/// The elements that a kernel reads.
pub(crate) fn read<T: Element>(view: &ReadView<T, 1>) -> &[T] {
    view.as_slice().expect(CONTIGUOUS)
}

/// The elements that a kernel writes.
pub(crate) fn write<'v, T: Element>(view: &'v mut WriteView<'_, T, 1>) -> &'v mut [T] {
    view.as_mut_slice().expect(CONTIGUOUS)
}
