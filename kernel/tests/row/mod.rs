//! Operands of programs in tests: rows of numbers.

use anabranch_kernel::{Number, Operands, Slice, SliceMut};
use std::ops::Range;

/// A row that a program reads, and rows that it sets.
pub struct Rows<'a> {
    pub read: &'a dyn Row,
    pub set: Vec<&'a mut dyn Row>,
    /// A slice is not longer than this, as if its region consisted of several boxes.
    pub longest: usize,
}

/// Numbers of some type.
pub trait Row {
    fn len(&self) -> usize;
    fn part(&self, elements: Range<usize>) -> Slice<'_>;
    fn part_mut(&mut self, elements: Range<usize>) -> SliceMut<'_>;
}

impl<T: Number> Row for Vec<T> {
    fn len(&self) -> usize {
        self.len()
    }

    fn part(&self, elements: Range<usize>) -> Slice<'_> {
        T::slice(&self[elements])
    }

    fn part_mut(&mut self, elements: Range<usize>) -> SliceMut<'_> {
        T::slice_mut(&mut self[elements])
    }
}

impl Rows<'_> {
    fn range(&self, len: usize, [_, _, x]: [usize; 3]) -> Range<usize> {
        assert!(x < len, "{x} is outside of a row of {len} elements");
        x..len.min(x.saturating_add(self.longest))
    }
}

/// The first operand is the one that is read.
impl Operands for Rows<'_> {
    fn extent(&self, operand: usize) -> [usize; 3] {
        [1, 1, if operand == 0 { self.read.len() } else { self.set[operand - 1].len() }]
    }

    fn read(&self, operand: usize, point: [usize; 3]) -> Slice<'_> {
        assert_eq!(operand, 0, "a program takes nothing of what it sets");
        self.read.part(self.range(self.read.len(), point))
    }

    fn write(&mut self, operand: usize, point: [usize; 3]) -> SliceMut<'_> {
        let elements = self.range(self.set[operand - 1].len(), point);
        self.set[operand - 1].part_mut(elements)
    }
}
