//! Coordinates: which element of an operand a kernel takes.

use super::{tape::Tape, value::Value};
use crate::{
    error::RecordError,
    number::Kind,
    operation::{Along, Binary, Id, What},
};
use std::{fmt, ops, panic::Location};

/// A coordinate of an element: the sum of [a coordinate of the point](crate::Output::point), the counter of a
/// [fold](crate::Output::fold) and a number (`3.into()`), or of some of these, and what is added to it or
/// subtracted from it.
///
/// A number is no part of the program, as a literal is not: with another one the kernel is the same program.
/// What is added by `row + 1` is a part of it.
#[derive(Clone, Copy)]
pub struct Coordinate<'t> {
    /// The tape of the point and the counter. A number belongs to none.
    tape: Option<&'t Tape>,
    /// The dimension of the point, padded at the front.
    point: Option<u8>,
    /// The fold of the counter.
    counter: Option<u32>,
    number: Option<usize>,
    offset: isize,
}

const OTHER_TAPE: &str = "a coordinate of one recording is used in another one";

impl<'t> Coordinate<'t> {
    const NOTHING: Self = Self { tape: None, point: None, counter: None, number: None, offset: 0 };

    /// The coordinate of the point along a dimension, padded at the front.
    pub(crate) fn of_point(tape: &'t Tape, dimension: usize) -> Self {
        Self { tape: Some(tape), point: Some(dimension as u8), ..Self::NOTHING }
    }

    /// The counter of a fold.
    pub(crate) fn of_fold(tape: &'t Tape, fold: u32) -> Self {
        Self { tape: Some(tape), counter: Some(fold), ..Self::NOTHING }
    }

    /// What a load takes along a dimension. A number becomes a literal of the tape.
    pub(crate) fn along(self, tape: &Tape, at: &'static Location<'static>) -> Along {
        assert!(self.tape.is_none_or(|own| std::ptr::eq(own, tape)), "{OTHER_TAPE}");
        let number = self.number.map(|number| tape.count(number, at));
        Along { point: self.point, number, counter: self.counter, offset: self.offset }
    }

    /// The coordinate as a number to compute with. It wraps around at 2³².
    ///
    /// # Panics
    /// If the coordinate is only a number: that is a literal.
    #[track_caller]
    pub fn value(self) -> Value<'t, u32> {
        let tape =
            self.tape.expect("a coordinate that is only a number is a literal: compute with the literal");
        let point = self.point.map(|dim| tape.record(What::Index(usize::from(dim)), Kind::U32));
        let counter = self.counter.map(|fold| tape.counter(fold));
        let number = self.number.map(|number| tape.literal(number as u32));
        let offset = (self.offset != 0).then(|| tape.literal(self.offset as u32));
        let parts = [point, counter, number, offset].into_iter().flatten();
        let add = |a: Id, b: Id| tape.record::<u32>(What::Binary(Binary::Add, a, b), Kind::U32).id();
        let sum = parts.map(Value::id).reduce(add);
        Value::new(tape, sum.expect("a coordinate with a tape has a point or a counter"))
    }
}

impl Tape {
    /// The coordinate of the point along a dimension, for elements of operands.
    #[track_caller]
    pub(crate) fn point(&self, dimension: usize) -> Coordinate<'_> {
        Coordinate::of_point(self, self.dimension(dimension))
    }
}

impl fmt::Debug for Coordinate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = self.point.map(|dimension| format!("point({dimension})"));
        let counter = self.counter.map(|fold| format!("counter({fold})"));
        let number = self.number.map(|number| number.to_string());
        let offset = (self.offset != 0).then(|| self.offset.to_string());
        let parts = [point, counter, number, offset].into_iter().flatten();
        f.write_str(&parts.collect::<Vec<_>>().join(" + "))
    }
}

impl From<usize> for Coordinate<'_> {
    fn from(number: usize) -> Self {
        Self { number: Some(number), ..Self::NOTHING }
    }
}

impl ops::Add<usize> for Coordinate<'_> {
    type Output = Self;

    fn add(self, by: usize) -> Self {
        Self { offset: self.offset.saturating_add_unsigned(by), ..self }
    }
}

impl ops::Sub<usize> for Coordinate<'_> {
    type Output = Self;

    fn sub(self, by: usize) -> Self {
        Self { offset: self.offset.saturating_sub_unsigned(by), ..self }
    }
}

impl ops::Add for Coordinate<'_> {
    type Output = Self;

    /// The sum. A sum of two coordinates of the point, or of two counters, is a mistake that ends the
    /// recording with an error.
    #[track_caller]
    fn add(self, other: Self) -> Self {
        let are_two = self.tape.zip(other.tape);
        assert!(are_two.is_none_or(|(own, other)| std::ptr::eq(own, other)), "{OTHER_TAPE}");
        let tape = self.tape.or(other.tape);
        let is_twice = self.point.is_some() && other.point.is_some()
            || self.counter.is_some() && other.counter.is_some();
        if let Some(tape) = tape
            && is_twice
        {
            tape.fail(RecordError::SumOfCoordinates { at: Location::caller() });
        }
        let number = [self.number, other.number].into_iter().flatten().reduce(usize::saturating_add);
        Self {
            tape,
            point: self.point.or(other.point),
            counter: self.counter.or(other.counter),
            number,
            offset: self.offset.saturating_add(other.offset),
        }
    }
}
