//! The operands of a kernel, as its closure sees them.

use crate::{
    number::Number,
    tape::{Outside, Tape},
    value::{IntoValue, Value},
};
use std::marker::PhantomData;

/// An operand that the kernel reads. Offsets are from the point that the kernel computes.
#[derive(Clone, Copy)]
pub struct Input<'t, T, const D: usize> {
    tape: &'t Tape,
    operand: usize,
    number: PhantomData<T>,
}

impl<'t, T: Number, const D: usize> Input<'t, T, D> {
    pub(crate) fn new(tape: &'t Tape, operand: usize) -> Self {
        Self { tape, operand, number: PhantomData }
    }

    /// The element at the point.
    #[track_caller]
    pub fn here(&self) -> Value<'t, T> {
        self.at([0; D])
    }

    /// The element at an offset from the point, which the declared region has for each point.
    #[track_caller]
    pub fn at(&self, offset: [isize; D]) -> Value<'t, T> {
        self.tape.load(self.operand, offset, Outside::Nothing)
    }

    /// The element at an offset from the point. Outside the buffer it is the nearest element of the buffer.
    #[track_caller]
    pub fn at_clamped(&self, offset: [isize; D]) -> Value<'t, T> {
        self.tape.load(self.operand, offset, Outside::Clamped)
    }

    /// The element at an offset from the point. Outside the buffer it is the element on the other side, as if the buffer were
    /// repeated in all directions.
    #[track_caller]
    pub fn at_periodic(&self, offset: [isize; D]) -> Value<'t, T> {
        self.tape.load(self.operand, offset, Outside::Periodic)
    }

    /// The element at an offset from the point, or `outside` where that leads out of the buffer.
    #[track_caller]
    pub fn at_or(&self, offset: [isize; D], outside: T) -> Value<'t, T> {
        self.tape.load(self.operand, offset, Outside::Value(outside))
    }

    /// The coordinate of the point along a dimension, from 0. A point has no coordinate of 2³² or more.
    #[track_caller]
    pub fn index(&self, dimension: usize) -> Value<'t, u32> {
        self.tape.index(dimension)
    }
}

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

    /// The coordinate of the point along a dimension: see [`Input::index`].
    #[track_caller]
    pub fn index(&self, dimension: usize) -> Value<'t, u32> {
        self.tape.index(dimension)
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
        self.tape.load(self.operand, [0; D], Outside::Nothing)
    }

    /// Sets the element at the point: see [`Output::set`].
    #[track_caller]
    pub fn set(&self, value: impl IntoValue<'t, T>) {
        let value = value.into_value(self.tape);
        self.tape.store(self.operand, value.id());
    }

    /// The coordinate of the point along a dimension: see [`Input::index`].
    #[track_caller]
    pub fn index(&self, dimension: usize) -> Value<'t, u32> {
        self.tape.index(dimension)
    }
}
