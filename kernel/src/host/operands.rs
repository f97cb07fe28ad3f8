//! The operands of a program while it runs.

use crate::number::{Slice, SliceMut};

/// The operands of a program. Points and extents are padded at the front: the last dimension is the one along which elements lie one after
/// the other.
pub trait Operands {
    /// The extent of an operand: 1 in each dimension that it does not have.
    fn extent(&self, operand: usize) -> [usize; 3];

    /// The elements from a point on, along the last dimension: at least one, and as many as lie one after the other.
    fn read(&self, operand: usize, point: [usize; 3]) -> Slice<'_>;

    /// The same of an operand that the program writes.
    fn write(&mut self, operand: usize, point: [usize; 3]) -> SliceMut<'_>;
}
