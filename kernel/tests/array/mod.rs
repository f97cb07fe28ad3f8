//! Arrays of tests, as operands of programs.

use anabranch_kernel::{Number, Operand, Slice, SliceMut};
use std::ops::Range;

/// An array. A program takes elements of an `Array<&[T]>`, and sets those of an `Array<&mut [T]>`.
pub struct Array<E> {
    pub elements: E,
    pub extent: [usize; 3],
    /// A slice is not longer than this, as if the region consisted of several boxes.
    pub longest: usize,
}

impl<E> Array<E> {
    pub fn new(elements: E, extent: [usize; 3], longest: usize) -> Self {
        Self { elements, extent, longest }
    }

    pub fn range(&self, point: [usize; 3]) -> Range<usize> {
        let [_, rows, cols] = self.extent;
        assert!(
            point.iter().zip(self.extent).all(|(&at, size)| at < size),
            "{point:?} is outside {:?}",
            self.extent
        );
        let [z, y, x] = point;
        let at = (z * rows + y) * cols + x;
        at..at + (cols - x).min(self.longest)
    }
}

/// A row that a program sets.
#[allow(dead_code, reason = "some tests have no rows")]
pub fn row_mut<T>(elements: &mut [T], longest: usize) -> Array<&mut [T]> {
    let extent = [1, 1, elements.len()];
    Array::new(elements, extent, longest)
}

impl<T: Number> Operand for Array<&[T]> {
    fn extent(&self) -> [usize; 3] {
        self.extent
    }

    fn read(&self, point: [usize; 3]) -> Slice<'_> {
        T::slice(&self.elements[self.range(point)])
    }

    fn write(&mut self, _: [usize; 3]) -> SliceMut<'_> {
        panic!("a program sets what it only takes")
    }
}

impl<T: Number> Operand for Array<&mut [T]> {
    fn extent(&self) -> [usize; 3] {
        self.extent
    }

    fn read(&self, _: [usize; 3]) -> Slice<'_> {
        panic!("a program takes nothing of what it only sets")
    }

    fn write(&mut self, point: [usize; 3]) -> SliceMut<'_> {
        let range = self.range(point);
        T::slice_mut(&mut self.elements[range])
    }
}
