//! The operands of a program while it runs.

use crate::{
    number::{Slice, SliceMut},
    program::Program,
};
use smallvec::SmallVec;

/// An operand of a program. Points and extents are padded at the front: the last dimension is the one along
/// which elements lie one after the other.
pub trait Operand {
    /// The extent: 1 in each dimension that the operand does not have.
    fn extent(&self) -> [usize; 3];

    /// The elements from a point on, along the last dimension: at least one, and as many as lie one after the
    /// other. It panics, or gives none, if the operand does not have the element at this point: a program
    /// does not compare points with the extent where it takes elements without an edge.
    fn read(&self, point: [usize; 3]) -> Slice<'_>;

    /// The same of an operand that the program sets.
    fn write(&mut self, point: [usize; 3]) -> SliceMut<'_>;
}

/// All operands but the outputs, at their numbers: a program takes elements of them, or sets them after all
/// steps.
pub(super) struct Others<'o>(SmallVec<[Option<&'o mut dyn Operand>; 8]>);

/// The operands of a program in two lists, because it sets the outputs while it takes elements of the others.
pub(super) struct Operands<'o> {
    pub(super) others: Others<'o>,
    /// Those that the steps set.
    pub(super) outputs: SmallVec<[&'o mut dyn Operand; 4]>,
}

impl<'o> Operands<'o> {
    pub(super) fn new(program: &Program, operands: &'o mut [&mut dyn Operand]) -> Self {
        let (expected, count) = (program.body.operands.len(), operands.len());
        assert!(count == expected, "a program has {expected} operands and got {count}");
        let (mut others, mut outputs) = (SmallVec::new(), SmallVec::new());
        for (number, operand) in operands.iter_mut().enumerate() {
            let operand: &mut dyn Operand = &mut **operand;
            if program.outputs.contains(&number) {
                outputs.push(operand);
                others.push(None);
            } else {
                others.push(Some(operand));
            }
        }
        Self { others: Others(others), outputs }
    }
}

impl<'o> Others<'o> {
    #[inline]
    pub(super) fn get(&self, operand: usize) -> &(dyn Operand + 'o) {
        self.0[operand].as_deref().expect(OTHERS)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, operand: usize) -> &mut (dyn Operand + 'o) {
        self.0[operand].as_deref_mut().expect(OTHERS)
    }
}

const OTHERS: &str = "a program takes nothing of an output";
