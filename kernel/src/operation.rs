//! The operations of a recording.

use crate::number::Kind;
use std::{
    hash::{Hash, Hasher},
    mem,
};

/// The number of an operation: its place on the tape.
pub(crate) type Id = u32;

/// An operation, whose result later operations use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) what: What,
    /// The type of the result.
    pub(crate) kind: Kind,
}

impl Hash for Operation {
    /// Hashes two words. To hash field by field takes as long as all the rest of a recording.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (what, inner, [a, b, c]) = match self.what {
            What::Load(load) => (0, 0, [load, 0, 0]),
            What::Parameter(parameter) => (1, 0, [parameter, 0, 0]),
            What::Index(dimension) => (2, 0, [dimension as u32, 0, 0]),
            What::Unary(unary, a) => (3, unary as u64, [a, 0, 0]),
            What::Binary(binary, a, b) => (4, binary as u64, [a, b, 0]),
            What::Compare(compare, a, b) => (5, compare as u64, [a, b, 0]),
            What::Select(a, b, c) => (6, 0, [a, b, c]),
            What::Convert(a) => (7, 0, [a, 0, 0]),
            What::BeginIteration(fold) => (8, 0, [fold, 0, 0]),
            What::State(fold, at) => (9, 0, [fold, at, 0]),
            What::EndIteration(fold) => (10, 0, [fold, 0, 0]),
            What::Folded(fold, at) => (11, 0, [fold, at, 0]),
        };
        let [a, b, c] = [a, b, c].map(u64::from);
        state.write_u64(what | inner << 8 | (self.kind as u64) << 16 | a << 32);
        state.write_u64(b | c << 32);
    }
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Takes an element: the number of the [`Load`].
    Load(u32),
    /// The value of a literal: its number.
    Parameter(u32),
    /// The coordinate of the point along one dimension.
    Index(usize),
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    /// A comparison, or an operation on the results of two.
    Compare(Compare, Id, Id),
    /// The second value where the first is true, and the third elsewhere.
    Select(Id, Id, Id),
    /// The value as another type of number.
    Convert(Id),
    /// Begins an iteration of a fold. The result is the counter.
    BeginIteration(u32),
    /// A value of the state of a fold at the beginning of an iteration: the numbers of both.
    State(u32, u32),
    /// Ends an iteration of a fold. It has no result.
    EndIteration(u32),
    /// A value of the state of a fold after the last iteration.
    Folded(u32, u32),
}

impl What {
    /// The operations whose results this one uses. [`Body::inputs`](crate::recording::Body::inputs) also
    /// knows those of folds.
    pub(crate) fn inputs(mut self) -> impl Iterator<Item = Id> {
        self.inputs_mut().map(|input| input.map(|input| *input)).into_iter().flatten()
    }

    /// The same, to be changed.
    pub(crate) fn inputs_mut(&mut self) -> [Option<&mut Id>; 3] {
        match self {
            Self::Load(_) | Self::Parameter(_) | Self::Index(_) => [None, None, None],
            Self::BeginIteration(_) | Self::State(..) | Self::EndIteration(_) | Self::Folded(..) => {
                [None, None, None]
            }
            Self::Unary(_, a) | Self::Convert(a) => [Some(a), None, None],
            Self::Binary(_, a, b) | Self::Compare(_, a, b) => [Some(a), Some(b), None],
            Self::Select(a, b, c) => [Some(a), Some(b), Some(c)],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Unary {
    Neg,
    Abs,
    Not,
    Sqrt,
    Floor,
    Ceil,
    Round,
    Trunc,
    Exp,
    Ln,
    Sin,
    Cos,
    Tan,
    Tanh,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Min,
    Max,
    Pow,
    Atan2,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Compare {
    Lt,
    Le,
    Eq,
    Ne,
    And,
    Or,
    Xor,
}

/// What an operand gives where the offset of a [`Load`] leads out of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Edge {
    /// No element is outside: the declaration says so.
    Inside,
    /// The nearest element of the buffer.
    Clamped,
    /// The element on the other side.
    Periodic,
    /// The value of this parameter.
    Parameter(u32),
}

/// An element of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Load {
    pub(crate) operand: usize,
    pub(crate) kind: Kind,
    /// Its coordinates. They are padded at the front, with 0.
    pub(crate) along: [Along; 3],
    pub(crate) edge: Edge,
}

/// A coordinate of an element: the sum of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Along {
    pub(crate) offset: isize,
    /// The coordinate of the point along this dimension, padded at the front.
    pub(crate) point: Option<u8>,
    /// The value of this parameter.
    pub(crate) number: Option<u32>,
    /// The counter of this fold.
    pub(crate) counter: Option<u32>,
}

impl Along {
    /// The coordinate of the point along a dimension, padded at the front, plus an offset.
    pub(crate) fn point(dimension: usize, offset: isize) -> Self {
        Self { point: Some(dimension as u8), offset, ..Self::default() }
    }
}

/// Where the elements of a load are for the points of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// All points take one element.
    Same,
    /// One after the other.
    Contiguous,
    /// Apart from each other.
    Apart,
}

impl Load {
    /// The innermost fold whose counter the coordinates have.
    pub(crate) fn fold(&self) -> Option<u32> {
        self.along.iter().filter_map(|along| along.counter).max()
    }

    /// Whether the elements are in one row of an operand with those of another load. Both loads have elements
    /// that lie one after the other. The literal of an edge does not matter: its value is known when a run
    /// begins.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        let is_same_edge = mem::discriminant(&self.edge) == mem::discriminant(&other.edge);
        self.operand == other.operand && self.along[..2] == other.along[..2] && is_same_edge
    }

    /// Where the elements are for the points of a row.
    #[inline]
    pub(crate) fn row(&self) -> Row {
        let [z, y, x] = &self.along;
        match (z.point == Some(2) || y.point == Some(2), x.point == Some(2)) {
            (false, false) => Row::Same,
            (false, true) => Row::Contiguous,
            (true, _) => Row::Apart,
        }
    }
}
