//! Reductions on the processor: the lanes of the leaf that is being computed, and the results of the leaves
//! before it.
//!
//! A block may begin at any lane and end in any leaf. Its values go to the lanes in their order, so the shape
//! of blocks does not matter.

use super::{
    argument::{Argument, Loaded, number},
    arithmetic::Arithmetic,
    instructions::Token,
    operands::Operand,
    registers::{Banks, IN_BANK},
};
use crate::{
    leaves::{LANES, LEAF, Leaves, combine_leaves},
    number::{Kind, Scalar, SliceMut},
    operator::{Operator, Reducible},
    program::{Program, Reduced},
    steps::Source,
};
use pulp::NullaryFnOnce;
use std::ops::Range;

/// The reductions of a program while it runs.
#[derive(Debug, Default)]
pub(super) struct Accumulators {
    all: Vec<Accumulator>,
    place: Place,
}

/// Where the next point is among the leaves.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The points of the leaf that are done.
    in_leaf: usize,
    /// The points of the band that are left.
    of_band: usize,
    /// The points that are left behind this band.
    behind: usize,
    /// The most points of a band.
    band: usize,
}

impl Place {
    fn new(leaves: Leaves) -> Self {
        let band = leaves.rows_of_band().saturating_mul(leaves.row);
        let all = leaves.rows.saturating_mul(leaves.row);
        Self { in_leaf: 0, of_band: band.min(all), behind: all.saturating_sub(band), band }
    }

    /// How many of the next `most` points belong to this leaf, and whether they end it.
    fn next(&self, most: usize) -> (usize, bool) {
        let left = (LEAF - self.in_leaf).min(self.of_band);
        assert!(left > 0, "a reduction gets no more values than its index space has points");
        (left.min(most), left <= most)
    }

    fn advance(&mut self, count: usize, ends: bool) {
        self.in_leaf = if ends { 0 } else { self.in_leaf + count };
        self.of_band -= count;
        if self.of_band == 0 {
            self.of_band = self.band.min(self.behind);
            self.behind -= self.of_band;
        }
    }
}

/// The lanes of the leaf, and the results of the leaves before it.
#[derive(Debug)]
struct Lanes<T> {
    lanes: Aligned<T>,
    results: Vec<T>,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Aligned<T>([T; LANES]);

impl<T: Arithmetic> Lanes<T> {
    fn new(operator: Operator, leaves: usize) -> Self {
        Self { lanes: Aligned([T::identity(operator); LANES]), results: Vec::with_capacity(leaves) }
    }

    /// Combines values into the lanes from lane `first` on.
    fn add(&mut self, token: Token, operator: Operator, first: usize, values: Argument<'_, T>, count: usize) {
        let lanes = &mut self.lanes;
        match operator {
            Operator::Sum => add(token, lanes, first, values, count, |a, b| T::combine(Operator::Sum, a, b)),
            Operator::Product => {
                add(token, lanes, first, values, count, |a, b| T::combine(Operator::Product, a, b));
            }
            Operator::Min => add(token, lanes, first, values, count, |a, b| T::combine(Operator::Min, a, b)),
            Operator::Max => add(token, lanes, first, values, count, |a, b| T::combine(Operator::Max, a, b)),
            Operator::And => add(token, lanes, first, values, count, |a, b| T::combine(Operator::And, a, b)),
            Operator::Or => add(token, lanes, first, values, count, |a, b| T::combine(Operator::Or, a, b)),
        }
    }

    /// Ends the leaf.
    fn end(&mut self, operator: Operator) {
        let Aligned(lanes) = &mut self.lanes;
        let mut half = LANES / 2;
        while half > 0 {
            let (low, high) = lanes.split_at_mut(half);
            low.iter_mut().zip(high).for_each(|(a, b)| *a = T::combine(operator, *a, *b));
            half /= 2;
        }
        self.results.push(lanes[0]);
        *lanes = [T::identity(operator); LANES];
    }
}

fn add<T: Copy>(
    token: Token,
    lanes: &mut Aligned<T>,
    first: usize,
    values: Argument<'_, T>,
    count: usize,
    f: impl Fn(T, T) -> T,
) {
    match values {
        Argument::Block(values) => token.run(Add { lanes, first, values: &values[..count], f }),
        Argument::Same(value) => {
            for at in 0..count {
                let lane = &mut lanes.0[(first + at) % LANES];
                *lane = f(*lane, value);
            }
        }
    }
}

struct Add<'a, T, F> {
    lanes: &'a mut Aligned<T>,
    first: usize,
    values: &'a [T],
    f: F,
}

impl<T: Copy, F: Fn(T, T) -> T> NullaryFnOnce for Add<'_, T, F> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { lanes, first, values, f } = self;
        let (front, values) = values.split_at(((LANES - first) % LANES).min(values.len()));
        lanes.0[first..].iter_mut().zip(front).for_each(|(lane, &value)| *lane = f(*lane, value));
        // A copy, which stays in the vector registers.
        let mut all = *lanes;
        let (rounds, rest) = values.as_chunks::<LANES>();
        for round in rounds {
            all.0.iter_mut().zip(round).for_each(|(lane, &value)| *lane = f(*lane, value));
        }
        all.0.iter_mut().zip(rest).for_each(|(lane, &value)| *lane = f(*lane, value));
        *lanes = all;
    }
}

/// What the values of a block are taken from.
pub(super) struct Values<'a> {
    pub(super) token: Token,
    pub(super) parameters: &'a [Scalar],
    pub(super) banks: &'a Banks,
    /// The elements of each load that the program needs.
    pub(super) loaded: Loaded<'a>,
}

impl Values<'_> {
    fn of<T: Arithmetic>(&self, source: Source, points: Range<usize>) -> Argument<'_, T> {
        match source {
            Source::Load(load) => match self.loaded.argument(load) {
                Argument::Block(elements) => Argument::Block(&elements[points]),
                same @ Argument::Same(_) => same,
            },
            Source::Parameter(parameter) => Argument::Same(number(self.parameters[parameter as usize])),
            Source::Register(register) => {
                Argument::Block(&T::bank(self.banks)[register as usize].as_ref().expect(IN_BANK).0[points])
            }
            Source::Counter(_) => unreachable!("a counter is known in the iterations of its fold only"),
            Source::Nowhere => unreachable!("a reduction needs what is inside of a chain"),
        }
    }
}

impl Accumulators {
    /// Begins the reductions of a program.
    pub(super) fn begin(&mut self, program: &Program, leaves: Leaves) {
        self.all.clear();
        self.place = Place::new(leaves);
        let new = |of: &Reduced| Accumulator::new(of.reduction.kind, of.reduction.operator, leaves.count());
        self.all.extend(program.reductions.iter().map(new));
    }

    /// Combines the values of a block of this many points.
    pub(super) fn add(&mut self, program: &Program, values: &Values<'_>, len: usize) {
        let mut done = 0;
        while done < len {
            let (count, ends) = self.place.next(len - done);
            for (accumulator, of) in self.all.iter_mut().zip(&program.reductions) {
                accumulator.add(values, of, self.place.in_leaf % LANES, done..done + count);
                if ends {
                    accumulator.end(of.reduction.operator);
                }
            }
            self.place.advance(count, ends);
            done += count;
        }
    }
}

macro_rules! accumulators {
    ($($kind:ident $number:ident),*) => {
        /// The lanes of a reduction.
        #[derive(Debug)]
        enum Accumulator {
            $($kind(Box<Lanes<$number>>)),*
        }

        impl Accumulator {
            fn new(kind: Kind, operator: Operator, leaves: usize) -> Self {
                match kind {
                    $(Kind::$kind => Self::$kind(Box::new(Lanes::new(operator, leaves))),)*
                    Kind::Bool => unreachable!("no operand has masks"),
                }
            }

            fn add(&mut self, values: &Values<'_>, of: &Reduced, first: usize, points: Range<usize>) {
                let (operator, count) = (of.reduction.operator, points.len());
                match self {
                    $(Self::$kind(lanes) => {
                        lanes.add(values.token, operator, first, values.of(of.source, points), count);
                    })*
                }
            }

            fn end(&mut self, operator: Operator) {
                match self {
                    $(Self::$kind(lanes) => lanes.end(operator)),*
                }
            }
        }

        impl Accumulators {
            /// Copies the results of all leaves to the operands, whose last coordinate is the number of the
            /// leaf.
            pub(super) fn copy_leaves(&self, program: &Program, operands: &mut [&mut dyn Operand]) {
                for (accumulator, of) in self.all.iter().zip(&program.reductions) {
                    let operand = of.reduction.operand;
                    let mut done = 0;
                    let len = match accumulator {
                        $(Accumulator::$kind(lanes) => lanes.results.len()),*
                    };
                    while done < len {
                        let copied = match (accumulator, operands[operand].write([0, 0, done])) {
                            $((Accumulator::$kind(lanes), SliceMut::$kind(to)) => {
                                let count = to.len().min(len - done);
                                to[..count].copy_from_slice(&lanes.results[done..done + count]);
                                count
                            })*
                            _ => panic!("an operand has the type that it was recorded with"),
                        };
                        assert!(copied > 0, "operand {operand} has no place for leaf {done}");
                        done += copied;
                    }
                }
            }

            /// Combines the results of all leaves of each reduction into the first element of its operand.
            pub(super) fn finish(&mut self, program: &Program, operands: &mut [&mut dyn Operand]) {
                for (accumulator, of) in self.all.iter_mut().zip(&program.reductions) {
                    let operand = of.reduction.operand;
                    match (accumulator, operands[operand].write([0; 3])) {
                        $((Accumulator::$kind(lanes), SliceMut::$kind(to)) => {
                            to[0] = total(of, &mut lanes.results, to[0]);
                        })*
                        _ => panic!("an operand has the type that it was recorded with"),
                    }
                }
            }
        }
    };
}

accumulators!(F32 f32, F64 f64, I32 i32, U32 u32, I64 i64, U64 u64);

/// Combines the results of all leaves.
fn total<T: Reducible>(of: &Reduced, leaves: &mut [T], current: T) -> T {
    let operator = of.reduction.operator;
    if of.reduction.includes_current {
        match leaves.first_mut() {
            Some(first) => *first = T::combine(operator, current, *first),
            None => return current,
        }
    }
    combine_leaves(leaves, |a, b| T::combine(operator, a, b)).unwrap_or_else(|| T::identity(operator))
}
