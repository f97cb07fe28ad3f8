//! The operands of a recorded kernel: for its closure symbols, for its recording the elements of views.

use crate::{
    data::{element::Element, stored::Stored},
    execute::devices::Buffers,
    submit::access::{Access, Read, Update, Write, list::AccessList},
};
use anabranch_grid::{RangeMapper, Region};
use anabranch_kernel::{Input, InputOutput, Number, Operand, Output, Slice, SliceMut, Tape};
use smallvec::smallvec;
use std::{array, sync::Arc};

/// A point or extent, padded at the front.
#[inline]
pub(in crate::submit) fn padded<const K: usize>(point: [usize; K], with: usize) -> [usize; 3] {
    array::from_fn(|dim| if dim + K < 3 { with } else { point[dim + K - 3] })
}

#[inline]
fn unpadded<const K: usize>(point: [usize; 3]) -> [usize; K] {
    array::from_fn(|dim| point[dim + 3 - K])
}

/// An access that a recorded kernel may have: a read of numbers in a buffer of any rank, a write or update of
/// numbers in a buffer with as many dimensions as the index space, or a reduction to one number.
#[diagnostic::on_unimplemented(
    message = "a recorded kernel over {K} dimensions cannot have the access `{Self}`",
    label = "not for recorded kernels",
    note = "`each` takes reads of buffers of numbers, writes and updates of buffers of numbers that have as many dimensions as the index \
            space, and reductions to one number by `sum()`, `product()`, `min()`, `max()`, `and()` or `or()`; `kernel` takes all others"
)]
pub trait RecordedAccess<const K: usize>: Access<K> {
    /// What the closure gets.
    type Symbol<'t>;

    /// The number of dimensions of the buffer.
    #[doc(hidden)]
    const RANK: usize;

    /// The next operand of a tape.
    #[doc(hidden)]
    fn symbol<'t>(&self, tape: &'t Tape) -> Self::Symbol<'t>;

    /// The region that chunk `chunk` declares.
    #[doc(hidden)]
    fn declared(bound: &Self::Bound, chunk: usize) -> Region<3>;

    /// The extent of the buffer, padded at the front.
    #[doc(hidden)]
    fn extent_of(bound: &Self::Bound) -> [usize; 3];

    /// The buffer, without its type.
    #[doc(hidden)]
    fn stored(bound: &Self::Bound) -> Arc<dyn Stored>;

    /// See [`extent_of`](Self::extent_of).
    #[doc(hidden)]
    fn extent(view: &Self::View<'_>) -> [usize; 3];

    /// The elements from a point on, which is padded at the front.
    #[doc(hidden)]
    fn elements<'s>(view: &'s Self::View<'_>, point: [usize; 3]) -> Slice<'s>;

    /// The elements from a point on, which is padded at the front, to be written.
    #[doc(hidden)]
    fn elements_mut<'s>(view: &'s mut Self::View<'_>, point: [usize; 3]) -> SliceMut<'s>;

    /// Of a reduction with one chunk: the number of its leaves, and the bytes of the result of each.
    #[doc(hidden)]
    fn leaves(_: &Self::Bound) -> Option<[usize; 2]> {
        None
    }

    /// Takes the results of these leaves.
    #[doc(hidden)]
    fn put_leaves(_: &Self::Bound, _results: &[u8]) {
        unreachable!("there are no leaves without a reduction")
    }
}

impl<T, M, const D: usize, const K: usize> RecordedAccess<K> for Read<T, D, M>
where
    T: Element + Number,
    M: RangeMapper<K, D> + 'static,
{
    type Symbol<'t> = Input<'t, T, D, K>;
    const RANK: usize = D;

    fn symbol<'t>(&self, tape: &'t Tape) -> Self::Symbol<'t> {
        tape.input_of_rank()
    }

    fn declared(bound: &Self::Bound, chunk: usize) -> Region<3> {
        bound.regions[chunk].cast()
    }

    fn extent_of(bound: &Self::Bound) -> [usize; 3] {
        padded(bound.extent().0, 1)
    }

    fn stored(bound: &Self::Bound) -> Arc<dyn Stored> {
        bound.stored()
    }

    fn extent(view: &Self::View<'_>) -> [usize; 3] {
        padded(view.extent().0, 1)
    }

    #[inline]
    fn elements<'s>(view: &'s Self::View<'_>, point: [usize; 3]) -> Slice<'s> {
        T::slice(view.run(unpadded(point)))
    }

    fn elements_mut<'s>(_: &'s mut Self::View<'_>, _: [usize; 3]) -> SliceMut<'s> {
        unreachable!("a recording sets no operand that its task only reads")
    }
}

impl<T, M, const K: usize> RecordedAccess<K> for Write<T, K, M>
where
    T: Element + Number,
    M: RangeMapper<K, K> + 'static,
{
    type Symbol<'t> = Output<'t, T, K>;
    const RANK: usize = K;

    fn symbol<'t>(&self, tape: &'t Tape) -> Self::Symbol<'t> {
        tape.output()
    }

    fn declared(bound: &Self::Bound, chunk: usize) -> Region<3> {
        bound.regions[chunk].cast()
    }

    fn extent_of(bound: &Self::Bound) -> [usize; 3] {
        padded(bound.extent().0, 1)
    }

    fn stored(bound: &Self::Bound) -> Arc<dyn Stored> {
        bound.stored()
    }

    fn extent(view: &Self::View<'_>) -> [usize; 3] {
        padded(view.extent().0, 1)
    }

    fn elements<'s>(_: &'s Self::View<'_>, _: [usize; 3]) -> Slice<'s> {
        unreachable!("a recording takes nothing of an operand that its task only writes")
    }

    #[inline]
    fn elements_mut<'s>(view: &'s mut Self::View<'_>, point: [usize; 3]) -> SliceMut<'s> {
        T::slice_mut(view.run_mut(unpadded(point)))
    }
}

impl<T, M, const K: usize> RecordedAccess<K> for Update<T, K, M>
where
    T: Element + Number,
    M: RangeMapper<K, K> + 'static,
{
    type Symbol<'t> = InputOutput<'t, T, K>;
    const RANK: usize = K;

    fn symbol<'t>(&self, tape: &'t Tape) -> Self::Symbol<'t> {
        tape.input_output()
    }

    fn declared(bound: &Self::Bound, chunk: usize) -> Region<3> {
        bound.regions[chunk].cast()
    }

    fn extent_of(bound: &Self::Bound) -> [usize; 3] {
        padded(bound.extent().0, 1)
    }

    fn stored(bound: &Self::Bound) -> Arc<dyn Stored> {
        bound.stored()
    }

    fn extent(view: &Self::View<'_>) -> [usize; 3] {
        padded(view.extent().0, 1)
    }

    #[inline]
    fn elements<'s>(view: &'s Self::View<'_>, point: [usize; 3]) -> Slice<'s> {
        T::slice(view.as_read().run(unpadded(point)))
    }

    #[inline]
    fn elements_mut<'s>(view: &'s mut Self::View<'_>, point: [usize; 3]) -> SliceMut<'s> {
        T::slice_mut(view.run_mut(unpadded(point)))
    }
}

/// The accesses of a recorded kernel.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of accesses of a recorded kernel over {K} dimensions",
    label = "not for recorded kernels",
    note = "`each` takes reads of buffers of numbers, writes and updates of buffers of numbers that have as many dimensions as the index \
            space, and reductions to one number by `sum()`, `product()`, `min()`, `max()`, `and()` or `or()`; `kernel` takes all others"
)]
pub trait RecordedAccessList<const K: usize>: AccessList<K> {
    /// What the closure gets.
    type Symbols<'t>;

    /// The operands of a tape.
    #[doc(hidden)]
    fn symbols<'t>(&self, tape: &'t Tape) -> Self::Symbols<'t>;

    /// See [`RecordedAccess::RANK`].
    #[doc(hidden)]
    const RANKS: &'static [usize];

    /// See [`RecordedAccess::declared`].
    #[doc(hidden)]
    fn declared(bound: &Self::Bound, operand: usize, chunk: usize) -> Region<3>;

    /// See [`RecordedAccess::extent_of`].
    #[doc(hidden)]
    fn extent_of(bound: &Self::Bound, operand: usize) -> [usize; 3];

    /// The buffers, without their types.
    #[doc(hidden)]
    fn stored(bound: &Self::Bound) -> Buffers;

    /// Calls a function with the views, as a program sees them.
    #[doc(hidden)]
    fn with_operands(views: &mut Self::Views<'_>, f: impl FnOnce(&mut [&mut dyn Operand]));

    /// See [`RecordedAccess::leaves`].
    #[doc(hidden)]
    fn leaves(bound: &Self::Bound, operand: usize) -> Option<[usize; 2]>;

    /// See [`RecordedAccess::put_leaves`].
    #[doc(hidden)]
    fn put_leaves(bound: &Self::Bound, operand: usize, results: &[u8]);
}

/// A view, as a program sees it.
struct ViewOf<'a, 'v, const K: usize, A: RecordedAccess<K>>(&'a mut A::View<'v>);

impl<const K: usize, A: RecordedAccess<K>> Operand for ViewOf<'_, '_, K, A> {
    #[inline]
    fn extent(&self) -> [usize; 3] {
        A::extent(self.0)
    }

    #[inline]
    fn read(&self, point: [usize; 3]) -> Slice<'_> {
        A::elements(self.0, point)
    }

    #[inline]
    fn write(&mut self, point: [usize; 3]) -> SliceMut<'_> {
        A::elements_mut(self.0, point)
    }
}

macro_rules! recorded_access_list {
    ($($access:ident $i:tt),*) => {
        impl<const K: usize, $($access: RecordedAccess<K>),*> RecordedAccessList<K> for ($($access,)*) {
            type Symbols<'t> = ($($access::Symbol<'t>,)*);
            const RANKS: &'static [usize] = &[$($access::RANK),*];

            fn symbols<'t>(&self, tape: &'t Tape) -> Self::Symbols<'t> {
                ($(self.$i.symbol(tape),)*)
            }

            fn declared(bound: &Self::Bound, operand: usize, chunk: usize) -> Region<3> {
                match operand {
                    $($i => $access::declared(&bound.$i, chunk),)*
                    _ => unreachable!("there is no operand {operand}"),
                }
            }

            fn extent_of(bound: &Self::Bound, operand: usize) -> [usize; 3] {
                match operand {
                    $($i => $access::extent_of(&bound.$i),)*
                    _ => unreachable!("there is no operand {operand}"),
                }
            }

            fn stored(bound: &Self::Bound) -> Buffers {
                smallvec![$($access::stored(&bound.$i)),*]
            }

            #[inline]
            fn with_operands(views: &mut Self::Views<'_>, f: impl FnOnce(&mut [&mut dyn Operand])) {
                f(&mut [$(&mut ViewOf::<K, $access>(&mut views.$i)),*]);
            }

            fn leaves(bound: &Self::Bound, operand: usize) -> Option<[usize; 2]> {
                match operand {
                    $($i => $access::leaves(&bound.$i),)*
                    _ => unreachable!("there is no operand {operand}"),
                }
            }

            fn put_leaves(bound: &Self::Bound, operand: usize, results: &[u8]) {
                match operand {
                    $($i => $access::put_leaves(&bound.$i, results),)*
                    _ => unreachable!("there is no operand {operand}"),
                }
            }
        }
    };
}

recorded_access_list!(A 0);
recorded_access_list!(A 0, B 1);
recorded_access_list!(A 0, B 1, C 2);
recorded_access_list!(A 0, B 1, C 2, D 3);
recorded_access_list!(A 0, B 1, C 2, D 3, E 4);
recorded_access_list!(A 0, B 1, C 2, D 3, E 4, F 5);
recorded_access_list!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
recorded_access_list!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
