//! Accumulators, into which a kernel combines one value of each point.

use super::{
    tape::Tape,
    value::{IntoValue, Mask},
};
use crate::{number::Number, operator::Operator, tape_contents::Combination};
use std::marker::PhantomData;

impl Tape {
    /// The next operand, a single number that the values of all points are combined into. `includes_current`
    /// says whether the number that the operand has before the kernel is combined, too.
    ///
    /// # Panics
    /// If the operator does not combine such numbers.
    pub fn accumulator<T: Number>(&self, operator: Operator, includes_current: bool) -> Accumulator<'_, T> {
        assert!(operator.is_for(T::KIND), "`{operator:?}` does not combine numbers of the type {}", T::KIND);
        let combination = Combination { operator, includes_current };
        Accumulator::new(self, self.operand(T::KIND, false, Some(combination)), operator)
    }
}

/// An operand into which the kernel combines one value of each point: see [`Leaves`](crate::Leaves) for the
/// order.
#[derive(Clone, Copy)]
pub struct Accumulator<'t, T> {
    pub(crate) tape: &'t Tape,
    operand: usize,
    operator: Operator,
    number: PhantomData<T>,
}

impl<'t, T: Number> Accumulator<'t, T> {
    pub(crate) fn new(tape: &'t Tape, operand: usize, operator: Operator) -> Self {
        Self { tape, operand, operator, number: PhantomData }
    }

    /// Combines the value of the point. A kernel does this once for each accumulator.
    #[track_caller]
    pub fn combine(&self, value: impl IntoValue<'t, T>) {
        let value = value.into_value(self.tape);
        self.tape.store(self.operand, value.id());
    }

    /// Combines the value of the point where the mask is true, and nothing elsewhere. The value is computed
    /// everywhere.
    #[track_caller]
    pub fn combine_if(&self, mask: Mask<'t>, value: impl IntoValue<'t, T>) {
        self.combine(mask.select(value, T::identity(self.operator)));
    }
}
