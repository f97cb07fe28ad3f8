//! What a program does for a block of points.

use crate::{
    number::Kind,
    operation::{Binary, Id, Operation, What},
};

/// Where a value is while a program runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// In an operand: the number of the load among those that the program needs.
    Load(u32),
    /// In the list of literals.
    Parameter(u32),
    /// In a register of its type.
    Register(u32),
    /// The counter of a fold.
    Counter(u32),
    /// Nowhere: no result needs it, or it never leaves its chain.
    Nowhere,
}

/// What a program does next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) action: Action,
    /// The type of the results.
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// Computes one operation, whose result goes to a register.
    Operation(What, u32),
    /// Copies a value to a register: an element that an operand is set to, or a part of the state of a fold.
    Copy { from: Source, register: u32 },
    /// Repeats the steps up to the end of a loop: its number in the program's list.
    Loop(u32),
    /// Computes the chains of a range of the program's list, which have one type.
    Chains { from: u32, to: u32 },
}

/// The turns of a fold.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) fold: u32,
    /// The step behind the last one of a turn.
    pub(crate) end: usize,
    /// The program's loads that differ from turn to turn.
    pub(crate) loads: Vec<u32>,
    /// What each turn leaves for the next one: two registers of a type, which change their places. The first one has the state.
    pub(crate) swaps: Vec<(Kind, [u32; 2])>,
}

/// Operations of which each one uses the result of the one before, and nothing else uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub(crate) first: Source,
    /// The range of its links in the program's list.
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Where the last result goes.
    pub(crate) register: u32,
}

/// An operation of a chain, and its other operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) join: Join,
    pub(crate) with: Source,
}

/// What a link does with the result so far and its other operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Join {
    Add,
    /// The result so far minus the operand.
    Sub,
    /// The operand minus the result so far.
    SubFrom,
    Mul,
}

/// An operation that can be a link of a chain.
#[derive(Clone, Copy)]
pub(crate) struct Linkable {
    /// What it does when the first operand is the result so far, and when the second one is.
    joins: [Join; 2],
    pub(crate) operands: [Id; 2],
}

impl Linkable {
    pub(crate) fn new(operation: Operation) -> Option<Self> {
        let (joins, operands) = match operation.what {
            What::Binary(Binary::Add, a, b) => ([Join::Add; 2], [a, b]),
            What::Binary(Binary::Sub, a, b) => ([Join::Sub, Join::SubFrom], [a, b]),
            What::Binary(Binary::Mul, a, b) => ([Join::Mul; 2], [a, b]),
            _ => return None,
        };
        matches!(operation.kind, Kind::F32 | Kind::F64).then_some(Self { joins, operands })
    }

    /// What it does when `so_far` is one of its operands, and the other operand. If both are the same, it is the first.
    pub(crate) fn join(self, so_far: Id) -> (Join, Id) {
        let [a, b] = self.operands;
        if so_far == a { (self.joins[0], b) } else { (self.joins[1], a) }
    }
}

/// The number of registers of each type.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Registers(pub(crate) [u32; 7]);

impl Registers {
    pub(crate) fn of(&self, kind: Kind) -> usize {
        self.0[kind as usize] as usize
    }

    /// The memory that they need for each point.
    pub(crate) fn bytes(&self) -> usize {
        let kinds = [Kind::Bool, Kind::F32, Kind::F64, Kind::I32, Kind::U32, Kind::I64, Kind::U64];
        let bytes = |kind: Kind| match kind {
            Kind::Bool => 1,
            Kind::F32 | Kind::I32 | Kind::U32 => 4,
            Kind::F64 | Kind::I64 | Kind::U64 => 8,
        };
        kinds.into_iter().map(|kind| self.of(kind) * bytes(kind)).sum()
    }
}
