//! The operations of a recording.

use crate::number::Kind;

/// The number of an operation: its place on the tape.
pub(crate) type Id = u32;

/// An operation, whose result later operations use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operation {
    pub(crate) what: What,
    /// The type of the result.
    pub(crate) kind: Kind,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
}

impl What {
    /// The operations whose results this one uses.
    pub(crate) fn inputs(self) -> impl Iterator<Item = Id> {
        let inputs = match self {
            Self::Load(_) | Self::Parameter(_) | Self::Index(_) => [None; 3],
            Self::Unary(_, a) | Self::Convert(a) => [Some(a), None, None],
            Self::Binary(_, a, b) | Self::Compare(_, a, b) => [Some(a), Some(b), None],
            Self::Select(a, b, c) => [Some(a), Some(b), Some(c)],
        };
        inputs.into_iter().flatten()
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

/// An element of an operand, at an offset from the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Load {
    pub(crate) operand: usize,
    pub(crate) kind: Kind,
    /// Padded with leading zeros.
    pub(crate) offset: [isize; 3],
    pub(crate) edge: Edge,
}
