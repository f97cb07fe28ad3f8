//! Random kernels with folds and with operands of any rank, and their plain evaluation.

pub mod run;

use crate::plain::{self, Edge, Plain};
use anabranch_kernel::{Coordinate, Input, Output, Recording, Tape, Value};
use proptest::prelude::*;

/// A coordinate of a load. What it lacks is not added; the counter is that of any fold around.
#[derive(Clone, Copy, Debug)]
pub struct Along {
    pub point: Option<usize>,
    pub counter: Option<usize>,
    pub number: Option<usize>,
    pub offset: isize,
}

/// A step of a kernel. Numbers of values are modulo the number of values that there are.
#[derive(Clone, Debug)]
pub enum Step<T> {
    /// With `None` as edge, the load is inside if it can be.
    Load {
        input: usize,
        along: [Along; 3],
        edge: Option<Edge<T>>,
    },
    Literal(T),
    /// A coordinate as a number.
    Number(Along),
    Operation(usize, [usize; 2]),
    Select(usize, [usize; 3]),
    Fold {
        range: [usize; 2],
        firsts: Vec<usize>,
        iteration: Vec<Step<T>>,
        next: Vec<usize>,
    },
}

/// Steps over an index space with a number of dimensions. The last value is the result.
#[derive(Clone, Debug)]
pub struct Kernel<T> {
    pub dimensions: usize,
    /// The points, padded at the front.
    pub points: [[usize; 3]; 2],
    /// The rank of each input, and its extent, padded at the front.
    pub inputs: Vec<(usize, [usize; 3])>,
    pub steps: Vec<Step<T>>,
}

fn along() -> impl Strategy<Value = Along> {
    let of = |most: usize| prop::option::of(0..most);
    (of(3), of(2), prop::option::weighted(0.2, 0_usize..4), -2_isize..3)
        .prop_map(|(point, counter, number, offset)| Along { point, counter, number, offset })
}

fn step<T: Plain>() -> impl Strategy<Value = Step<T>> {
    let literal = || any::<u64>().prop_map(|seed| T::draw(seed, 0));
    let edge = prop_oneof![Just(Edge::Clamped), Just(Edge::Periodic), literal().prop_map(Edge::Or)];
    let alongs = || [along(), along(), along()];
    let load = (0..4_usize, alongs(), prop::option::of(edge)).prop_map(|(input, along, edge)| Step::Load {
        input,
        along,
        edge,
    });
    prop_oneof![
        4 => load,
        1 => literal().prop_map(Step::Literal),
        1 => along().prop_map(Step::Number),
        5 => (0..T::OPERATIONS, any::<[u8; 2]>())
            .prop_map(|(operation, of)| Step::Operation(operation, of.map(usize::from))),
        // Sums, differences and products are chains of floats.
        3 => (0..3_usize, any::<[u8; 2]>())
            .prop_map(|(operation, of)| Step::Operation(operation, of.map(usize::from))),
        1 => (0..plain::COMPARISONS, any::<[u8; 3]>())
            .prop_map(|(compare, of)| Step::Select(compare, of.map(usize::from))),
    ]
}

/// Steps with folds that are nested up to this deep.
fn steps<T: Plain>(depth: usize) -> BoxedStrategy<Vec<Step<T>>> {
    let steps = || prop::collection::vec(step(), 1..7);
    if depth == 0 {
        return steps().boxed();
    }
    let values = prop::collection::vec(any::<(u8, u8)>(), 1..5);
    let fold = (0..3_usize, 0..5_usize, values, self::steps(depth - 1)).prop_map(
        |(from, iterations, of, iteration)| {
            let of = of.into_iter().map(|(first, next)| (usize::from(first), usize::from(next)));
            let (firsts, next) = of.unzip();
            Step::Fold { range: [from, from + iterations], firsts, iteration, next }
        },
    );
    (steps(), prop::option::weighted(0.8, fold), steps())
        .prop_map(|(mut before, fold, after)| {
            before.extend(fold);
            before.extend(after);
            before
        })
        .boxed()
}

/// Kernels whose rows have up to this many points.
pub fn kernels<T: Plain>(most: usize) -> impl Strategy<Value = Kernel<T>> {
    let size = move || prop_oneof![3 => 1_usize..8, 1 => 1..most];
    let input = (0..4_usize, [1_usize..5, 1_usize..5], size()).prop_map(|(rank, [z, y], x)| {
        let extent = [z, y, x];
        (rank, std::array::from_fn(|dim| if dim + rank < 3 { 1 } else { extent[dim] }))
    });
    let point = (0_usize..3, 1_usize..4);
    let row = (0_usize..5, prop_oneof![1_usize..9, 1..most]);
    (0..4_usize, [point.clone(), point], row, prop::collection::vec(input, 4), steps(2)).prop_map(
        |(dimensions, [z, y], x, inputs, steps)| {
            let mut points = [[0; 3], [1; 3]];
            for (dim, (from, count)) in [z, y, x].into_iter().enumerate().skip(3 - dimensions) {
                (points[0][dim], points[1][dim]) = (from, from + count);
            }
            Kernel { dimensions, points, inputs, steps }
        },
    )
}

/// An input of a rank that is known at run time.
enum AnyInput<'t, T, const K: usize> {
    Zero(Input<'t, T, 0, K>),
    One(Input<'t, T, 1, K>),
    Two(Input<'t, T, 2, K>),
    Three(Input<'t, T, 3, K>),
}

macro_rules! get {
    ($input:expr, $at:expr, $edge:expr) => {
        match $edge {
            None => $input.get($at),
            Some(Edge::Clamped) => $input.get_clamped($at),
            Some(Edge::Periodic) => $input.get_periodic($at),
            Some(Edge::Or(value)) => $input.get_or($at, value),
        }
    };
}

struct Recorder<'t, 'k, T, const K: usize> {
    kernel: &'k Kernel<T>,
    output: Output<'t, T, K>,
    inputs: Vec<AnyInput<'t, T, K>>,
}

impl<T: Plain> Kernel<T> {
    /// Records the kernel. The output is the last operand.
    pub fn record(&self) -> Recording {
        match self.dimensions {
            0 => self.record_over::<0>(),
            1 => self.record_over::<1>(),
            2 => self.record_over::<2>(),
            _ => self.record_over::<3>(),
        }
    }

    fn record_over<const K: usize>(&self) -> Recording {
        let tape = Tape::new(K);
        let input = |&(rank, _): &(usize, _)| match rank {
            0 => AnyInput::Zero(tape.input_of_rank()),
            1 => AnyInput::One(tape.input_of_rank()),
            2 => AnyInput::Two(tape.input_of_rank()),
            _ => AnyInput::Three(tape.input_of_rank()),
        };
        let inputs: Vec<AnyInput<'_, T, K>> = self.inputs.iter().map(input).collect();
        let output = tape.output::<T, K>();
        let recorder = Recorder { kernel: self, output, inputs };
        let mut values = Vec::new();
        recorder.steps(&self.steps, &mut values, &mut Vec::new(), &mut Vec::new());
        match values.last() {
            Some(&value) => output.set(value),
            None => output.set(T::default()),
        }
        tape.finish().expect("the kernel is right")
    }

    /// Whether all coordinates are inside of the input, if counters have these ranges.
    fn is_inside(&self, input: usize, along: &[Along; 3], counters: &[[usize; 2]]) -> bool {
        let (rank, extent) = self.inputs[input];
        (3 - rank..3).all(|dim| {
            let Along { point, counter, number, offset } = along[dim];
            let [min, end] = self.dimension(point).map_or([0, 1], |dim| self.points.map(|point| point[dim]));
            let of =
                counter.filter(|_| !counters.is_empty()).map_or([0, 1], |at| counters[at % counters.len()]);
            let number = number.unwrap_or(0) as isize + offset;
            let (first, last) = ((min + of[0]) as isize + number, (end + of[1]) as isize - 2 + number);
            first >= 0 && last < extent[dim] as isize
        })
    }

    /// The dimension of the index space, padded at the front.
    fn dimension(&self, point: Option<usize>) -> Option<usize> {
        point.filter(|_| self.dimensions > 0).map(|point| 3 - self.dimensions + point % self.dimensions)
    }

    /// What the kernel gives at a point.
    pub fn evaluate(&self, inputs: &[Vec<T>], point: [usize; 3]) -> T {
        let mut values = Vec::new();
        self.compute(&self.steps, inputs, point, &mut values, &mut Vec::new(), &mut Vec::new());
        values.last().copied().unwrap_or_default()
    }

    fn coordinate(&self, along: Along, point: [usize; 3], counters: &[usize]) -> isize {
        let counter = along.counter.filter(|_| !counters.is_empty());
        let sum = self.dimension(along.point).map_or(0, |dim| point[dim])
            + counter.map_or(0, |at| counters[at % counters.len()])
            + along.number.unwrap_or(0);
        sum as isize + along.offset
    }

    fn compute(
        &self,
        steps: &[Step<T>],
        inputs: &[Vec<T>],
        point: [usize; 3],
        values: &mut Vec<T>,
        counters: &mut Vec<usize>,
        ranges: &mut Vec<[usize; 2]>,
    ) {
        for step in steps {
            let of = |at: usize| if values.is_empty() { T::default() } else { values[at % values.len()] };
            let value = match step {
                Step::Load { input, along, edge } => {
                    let (rank, extent) = self.inputs[*input];
                    let is_inside = edge.is_none() && self.is_inside(*input, along, ranges);
                    let edge = edge.unwrap_or(Edge::Clamped);
                    let inside = |dim: usize| {
                        if dim + rank < 3 {
                            return Some(0);
                        }
                        let (at, size) = (self.coordinate(along[dim], point, counters), extent[dim] as isize);
                        assert!(!is_inside || (0..size).contains(&at));
                        match edge {
                            Edge::Clamped => Some(at.clamp(0, size - 1)),
                            Edge::Periodic => Some((at % size + size) % size),
                            Edge::Or(_) => Some(at).filter(|at| (0..size).contains(at)),
                        }
                    };
                    match (inside(0), inside(1), inside(2), edge) {
                        (Some(z), Some(y), Some(x), _) => {
                            let [_, ny, nx] = extent.map(|size| size as isize);
                            inputs[*input][((z * ny + y) * nx + x) as usize]
                        }
                        (.., Edge::Or(value)) => value,
                        _ => unreachable!("the other edges have an element"),
                    }
                }
                Step::Literal(value) => *value,
                Step::Number(along) => {
                    T::from_index(self.coordinate(*along, point, counters) as u32 as usize)
                }
                Step::Operation(operation, [a, b]) => T::compute(*operation, of(*a), of(*b)),
                Step::Select(compare, [a, b, c]) => {
                    if plain::holds(*compare, of(*a), of(*b), of(*c)) {
                        of(*b)
                    } else {
                        of(*c)
                    }
                }
                Step::Fold { range, firsts, iteration, next } => {
                    let mut state: Vec<T> = firsts.iter().map(|&first| of(first)).collect();
                    ranges.push(*range);
                    for counter in range[0]..range[1] {
                        let mut inside = values.clone();
                        inside.extend(&state);
                        counters.push(counter);
                        self.compute(iteration, inputs, point, &mut inside, counters, ranges);
                        counters.pop();
                        state = next.iter().map(|&next| inside[next % inside.len()]).collect();
                    }
                    ranges.pop();
                    values.extend(state);
                    continue;
                }
            };
            values.push(value);
        }
    }
}

impl<'t, T: Plain, const K: usize> Recorder<'t, '_, T, K> {
    fn coordinate(&self, along: Along, counters: &[Coordinate<'t>]) -> Coordinate<'t> {
        let point = along.point.filter(|_| K > 0).map(|point| self.output.point(point % K));
        let counter = along.counter.filter(|_| !counters.is_empty());
        let counter = counter.map(|at| counters[at % counters.len()]);
        let sum = [point, counter, along.number.map(Coordinate::from)].into_iter().flatten();
        let sum = sum.reduce(|a, b| a + b).unwrap_or_else(|| 0.into());
        let by = along.offset.unsigned_abs();
        if along.offset < 0 { sum - by } else { sum + by }
    }

    fn steps(
        &self,
        steps: &[Step<T>],
        values: &mut Vec<Value<'t, T>>,
        counters: &mut Vec<Coordinate<'t>>,
        ranges: &mut Vec<[usize; 2]>,
    ) {
        for step in steps {
            let nothing = || self.output.fold(0..0, T::default(), |value, _| value);
            let of = |at: usize| if values.is_empty() { nothing() } else { values[at % values.len()] };
            let value = match step {
                Step::Load { input, along, edge } => {
                    let at = along.map(|along| self.coordinate(along, counters));
                    let is_inside = self.kernel.is_inside(*input, along, ranges);
                    let edge = if is_inside { *edge } else { edge.or(Some(Edge::Clamped)) };
                    match &self.inputs[*input] {
                        AnyInput::Zero(input) => get!(input, [], edge),
                        AnyInput::One(input) => get!(input, [at[2]], edge),
                        AnyInput::Two(input) => get!(input, [at[1], at[2]], edge),
                        AnyInput::Three(input) => get!(input, at, edge),
                    }
                }
                Step::Literal(value) => nothing().literal(*value),
                Step::Number(along) => {
                    let coordinate = self.coordinate(*along, counters);
                    let is_number =
                        (along.point.is_none() || K == 0) && (along.counter.is_none() || counters.is_empty());
                    match is_number {
                        // A coordinate that is only a number is a literal.
                        true => {
                            let number = along.number.unwrap_or(0) as isize + along.offset;
                            nothing().literal(T::from_index(number as u32 as usize))
                        }
                        false => coordinate.value().convert(),
                    }
                }
                Step::Operation(operation, [a, b]) => T::record(*operation, of(*a), of(*b)),
                Step::Select(compare, [a, b, c]) => {
                    plain::mask(*compare, of(*a), of(*b), of(*c)).select(of(*b), of(*c))
                }
                Step::Fold { range, firsts, iteration, next } => {
                    let firsts: Vec<_> = firsts.iter().map(|&first| of(first)).collect();
                    ranges.push(*range);
                    let outside = values.clone();
                    let mut iteration = |state: &[Value<'t, T>], counter: Coordinate<'t>| {
                        let mut inside = outside.clone();
                        inside.extend(state);
                        counters.push(counter);
                        self.steps(iteration, &mut inside, counters, ranges);
                        counters.pop();
                        next.iter().map(|&next| inside[next % inside.len()]).collect::<Vec<_>>()
                    };
                    let (output, iterations) = (self.output, range[0]..range[1]);
                    match firsts[..] {
                        [a] => values.push(output.fold(iterations, a, |a, k| iteration(&[a], k)[0])),
                        [a, b] => {
                            let (a, b) = output.fold(iterations, (a, b), |(a, b), k| {
                                let next = iteration(&[a, b], k);
                                (next[0], next[1])
                            });
                            values.extend([a, b]);
                        }
                        [a, b, c] => {
                            let (a, b, c) = output.fold(iterations, (a, b, c), |(a, b, c), k| {
                                let next = iteration(&[a, b, c], k);
                                (next[0], next[1], next[2])
                            });
                            values.extend([a, b, c]);
                        }
                        [a, b, c, d] => {
                            let (a, b, c, d) = output.fold(iterations, (a, b, c, d), |(a, b, c, d), k| {
                                let next = iteration(&[a, b, c, d], k);
                                (next[0], next[1], next[2], next[3])
                            });
                            values.extend([a, b, c, d]);
                        }
                        _ => unreachable!("a fold has one to four values"),
                    }
                    ranges.pop();
                    continue;
                }
            };
            values.push(value);
        }
    }
}
