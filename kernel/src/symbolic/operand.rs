//! The operands of a kernel, as its closure sees them.

use super::{
    accumulator::Accumulator,
    coordinate::Coordinate,
    state::FoldState,
    tape::Tape,
    value::{IntoValue, Outside, Value},
};
use crate::{number::Number, operation::Along};
use std::{array, marker::PhantomData, ops::Range, panic::Location};

impl Tape {
    /// The next operand, which the kernel reads. It has as many dimensions as the index space.
    pub fn input<T: Number, const D: usize>(&self) -> Input<'_, T, D> {
        self.input_of_rank()
    }

    /// The next operand, which the kernel reads. It has `D` dimensions, up to 3, and the index space has `K`.
    pub fn input_of_rank<T: Number, const D: usize, const K: usize>(&self) -> Input<'_, T, D, K> {
        assert!(D <= 3, "{D} dimensions: an operand of a recorded kernel has up to 3");
        Input::new(self, self.operand(T::KIND, false, None))
    }

    /// The next operand, which the kernel writes.
    pub fn output<T: Number, const D: usize>(&self) -> Output<'_, T, D> {
        Output::new(self, self.operand(T::KIND, true, None))
    }

    /// The next operand, which the kernel reads and then writes at each point.
    pub fn input_output<T: Number, const D: usize>(&self) -> InputOutput<'_, T, D> {
        InputOutput::new(self, self.operand(T::KIND, true, None))
    }
}

/// An operand that the kernel reads, with `D` dimensions, over an index space of `K` dimensions.
///
/// Where both have as many, [`here`](Self::here) and [`at`](Self::at) take the elements at offsets from the
/// point that the kernel computes. [`get`](Self::get) takes elements of operands of any rank by their
/// coordinates.
#[derive(Clone, Copy)]
pub struct Input<'t, T, const D: usize, const K: usize = D> {
    tape: &'t Tape,
    operand: usize,
    number: PhantomData<T>,
}

impl<'t, T: Number, const D: usize> Input<'t, T, D> {
    /// The element at the point.
    #[track_caller]
    pub fn here(&self) -> Value<'t, T> {
        self.at([0; D])
    }

    /// The element at an offset from the point. The declared region must contain it for each point.
    #[track_caller]
    pub fn at(&self, offset: [isize; D]) -> Value<'t, T> {
        self.tape.load(self.operand, from_point(offset), Outside::Nothing)
    }

    /// The element at an offset from the point. Outside the buffer it is the nearest element of the buffer.
    #[track_caller]
    pub fn at_clamped(&self, offset: [isize; D]) -> Value<'t, T> {
        self.tape.load(self.operand, from_point(offset), Outside::Clamped)
    }

    /// The element at an offset from the point. Outside the buffer it is the element on the other side, as if
    /// the buffer were repeated in all directions.
    #[track_caller]
    pub fn at_periodic(&self, offset: [isize; D]) -> Value<'t, T> {
        self.tape.load(self.operand, from_point(offset), Outside::Periodic)
    }

    /// The element at an offset from the point, or `outside` where that leads out of the buffer.
    #[track_caller]
    pub fn at_or(&self, offset: [isize; D], outside: T) -> Value<'t, T> {
        self.tape.load(self.operand, from_point(offset), Outside::Value(outside))
    }
}

impl<'t, T: Number, const K: usize> Input<'t, T, 0, K> {
    /// The only element of an operand without dimensions.
    #[track_caller]
    pub fn value(&self) -> Value<'t, T> {
        self.get([])
    }
}

impl<'t, T: Number, const D: usize, const K: usize> Input<'t, T, D, K> {
    pub(crate) fn new(tape: &'t Tape, operand: usize) -> Self {
        Self { tape, operand, number: PhantomData }
    }

    /// The element with these coordinates. The declared region must contain it for each point.
    #[track_caller]
    pub fn get(&self, coordinates: [Coordinate<'t>; D]) -> Value<'t, T> {
        self.load(coordinates, Outside::Nothing)
    }

    /// The element with these coordinates. Outside the buffer it is the nearest element of the buffer.
    #[track_caller]
    pub fn get_clamped(&self, coordinates: [Coordinate<'t>; D]) -> Value<'t, T> {
        self.load(coordinates, Outside::Clamped)
    }

    /// The element with these coordinates. Outside the buffer it is the element on the other side, as if the
    /// buffer were repeated in all directions.
    #[track_caller]
    pub fn get_periodic(&self, coordinates: [Coordinate<'t>; D]) -> Value<'t, T> {
        self.load(coordinates, Outside::Periodic)
    }

    /// The element with these coordinates, or `outside` where they lead out of the buffer.
    #[track_caller]
    pub fn get_or(&self, coordinates: [Coordinate<'t>; D], outside: T) -> Value<'t, T> {
        self.load(coordinates, Outside::Value(outside))
    }

    #[track_caller]
    fn load(&self, coordinates: [Coordinate<'t>; D], outside: Outside<T>) -> Value<'t, T> {
        let at = Location::caller();
        let along = coordinates.map(|coordinate| coordinate.along(self.tape, at));
        self.tape.load(self.operand, along, outside)
    }
}

/// The coordinates at an offset from the point, of an operand with as many dimensions as the index space.
fn from_point<const D: usize>(offset: [isize; D]) -> [Along; D] {
    array::from_fn(|dim| Along::point(3 - D + dim, offset[dim]))
}

/// What every operand can say of the point.
macro_rules! points {
    ($($operand:ident<$($dims:ident),*>),*) => {
        $(
            impl<'t, T: Number, $(const $dims: usize),*> $operand<'t, T, $($dims),*> {
                /// The coordinate of the point along a dimension, from 0, for [elements](Input::get) of other
                /// operands.
                #[track_caller]
                pub fn point(&self, dimension: usize) -> Coordinate<'t> {
                    self.tape.point(dimension)
                }

                /// The coordinate of the point along a dimension, from 0, as a number. A point has no
                /// coordinate of 2³² or more.
                #[track_caller]
                pub fn index(&self, dimension: usize) -> Value<'t, u32> {
                    self.tape.index(dimension)
                }

                /// The number of the replay, from 0, where the kernel is a part of a sequence that is replayed;
                /// otherwise 0. It wraps around at 2³². It is no part of the program, as a literal is not.
                pub fn replay(&self) -> Value<'t, u32> {
                    self.tape.replay()
                }

                /// Computes a state again and again, once for each number of a range. `iteration` gets the
                /// state and the number, and returns the next state. The result is the state after the last
                /// iteration; of an empty range it is `first`.
                ///
                /// `first` is a literal, a value, or a tuple of up to four of these. `iteration` runs once,
                /// and what it records is a loop. The range is no part of the program, as a literal is not: a
                /// kernel that folds over another range is the same program. Folds may be in the iterations
                /// of others. What an iteration computes stays inside of it, except for the state.
                ///
                /// ```
                /// # let tape = anabranch_kernel::Tape::new(2);
                /// # let n = 10;
                /// # let (a, b) = (tape.input::<f32, 2>(), tape.input::<f32, 2>());
                /// # let c = tape.output::<f32, 2>();
                /// // An element of the product of two matrices, whose inner extent is `n`.
                /// let (row, col) = (c.point(0), c.point(1));
                /// c.set(c.fold(0..n, 0.0, |sum, k| sum + a.get([row, k]) * b.get([k, col])));
                /// # assert!(tape.finish().is_ok());
                /// ```
                #[track_caller]
                pub fn fold<S: FoldState<'t>>(
                    &self,
                    range: Range<usize>,
                    first: S,
                    iteration: impl FnOnce(S::Values, Coordinate<'t>) -> S::Values,
                ) -> S::Values {
                    self.tape.fold(range, first, iteration)
                }
            }
        )*
    };
}

points!(Input<D, K>, Output<D>, InputOutput<D>, Accumulator<>);

/// An operand that the kernel writes: one element at each point.
#[derive(Clone, Copy)]
pub struct Output<'t, T, const D: usize> {
    tape: &'t Tape,
    operand: usize,
    number: PhantomData<T>,
}

impl<'t, T: Number, const D: usize> Output<'t, T, D> {
    pub(crate) fn new(tape: &'t Tape, operand: usize) -> Self {
        Self { tape, operand, number: PhantomData }
    }

    /// Sets the element at the point. A kernel does this once for each operand that it writes.
    #[track_caller]
    pub fn set(&self, value: impl IntoValue<'t, T>) {
        let value = value.into_value(self.tape);
        self.tape.store(self.operand, value.id());
    }
}

/// An operand that the kernel reads and writes: the element at the point.
#[derive(Clone, Copy)]
pub struct InputOutput<'t, T, const D: usize> {
    tape: &'t Tape,
    operand: usize,
    number: PhantomData<T>,
}

impl<'t, T: Number, const D: usize> InputOutput<'t, T, D> {
    pub(crate) fn new(tape: &'t Tape, operand: usize) -> Self {
        Self { tape, operand, number: PhantomData }
    }

    /// The element at the point before the kernel sets it, also after the call of [`set`](Self::set).
    #[track_caller]
    pub fn here(&self) -> Value<'t, T> {
        self.tape.load(self.operand, from_point([0; D]), Outside::Nothing)
    }

    /// Sets the element at the point: see [`Output::set`].
    #[track_caller]
    pub fn set(&self, value: impl IntoValue<'t, T>) {
        let value = value.into_value(self.tape);
        self.tape.store(self.operand, value.id());
    }
}
