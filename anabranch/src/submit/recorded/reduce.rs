//! Reductions of recorded kernels: the results of the leaves of a chunk go to its partial result, one after
//! the other.

use super::access::RecordedAccess;
use crate::{
    data::{element::Element, stored::Stored},
    submit::access::{
        operator::{And, Max, Min, Operator, Or, Product, Sum},
        reduce::Reduce,
        sealed::Sealed,
    },
};
use anabranch_grid::Region;
use anabranch_kernel::{self as kernel, Accumulator, Number, Slice, SliceMut, Tape};
use std::sync::Arc;

/// An operator of reductions that recorded kernels have: [`sum`](fn@crate::sum),
/// [`product`](fn@crate::product), [`min`](crate::min) and [`max`](crate::max) of numbers,
/// [`and`](fn@crate::and) and [`or`](fn@crate::or) of integers.
#[diagnostic::on_unimplemented(
    message = "a recorded kernel cannot combine numbers of type `{T}` by `{Self}`",
    label = "not an operator of recorded kernels",
    note = "`each` has reductions by `sum()`, `product()`, `min()` and `max()` of `f32`, `f64`, `i32`, `u32`, `i64` and `u64`, and by `and()` \
            and `or()` of the integers; `kernel` takes all other operators"
)]
pub trait RecordedOperator<T>: Operator<T> + Sealed {
    #[doc(hidden)]
    const OPERATOR: kernel::Operator;
}

macro_rules! recorded_operators {
    ($($operator:ident: $($number:ident)*;)*) => {$(
        impl Sealed for $operator {}

        $(
            impl RecordedOperator<$number> for $operator {
                const OPERATOR: kernel::Operator = kernel::Operator::$operator;
            }
        )*
    )*};
}

recorded_operators!(
    Sum: f32 f64 i32 u32 i64 u64;
    Product: f32 f64 i32 u32 i64 u64;
    Min: f32 f64 i32 u32 i64 u64;
    Max: f32 f64 i32 u32 i64 u64;
    And: i32 u32 i64 u64;
    Or: i32 u32 i64 u64;
);

impl<T, O, const K: usize> RecordedAccess<K> for Reduce<T, 0, O>
where
    T: Element + Number,
    O: RecordedOperator<T>,
{
    type Symbol<'t> = Accumulator<'t, T>;
    const RANK: usize = 0;

    fn symbol<'t>(&self, tape: &'t Tape) -> Self::Symbol<'t> {
        tape.accumulator(O::OPERATOR, self.include_current)
    }

    fn declared(_: &Self::Bound, _: usize) -> Region<3> {
        // A recording takes and sets no element of an operand that it reduces to.
        Region::empty()
    }

    fn extent_of(_: &Self::Bound) -> [usize; 3] {
        [1; 3]
    }

    fn stored(bound: &Self::Bound) -> Arc<dyn Stored> {
        bound.stored()
    }

    fn extent(_: &Self::View<'_>) -> [usize; 3] {
        [1; 3]
    }

    fn elements<'s>(_: &'s Self::View<'_>, _: [usize; 3]) -> Slice<'s> {
        unreachable!("a recording takes no element of an operand that it reduces to")
    }

    fn elements_mut<'s>(view: &'s mut Self::View<'_>, [_, _, leaf]: [usize; 3]) -> SliceMut<'s> {
        T::slice_mut(&mut view.as_mut_slice()[leaf..])
    }

    fn leaves(bound: &Self::Bound) -> Option<[usize; 2]> {
        bound.leaves_of_chunk().map(|count| [count, size_of::<T>()])
    }

    fn put_leaves(bound: &Self::Bound, results: &[u8]) {
        bound.put_leaves(results);
    }
}
