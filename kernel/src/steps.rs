//! What a program does for a block of points.

use crate::{
    number::Kind,
    operation::{Along, Binary, Id, Load, Operation, What},
};

/// Where a value is while a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// Where a result goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// To a register of its type.
    Register(u32),
    /// To the operand that is set to it: its place in the program's list of outputs.
    Output(u32),
}

/// A load that a program needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramLoad {
    /// Its number in the recording.
    pub(crate) number: u32,
    /// Whether its elements differ between the iterations of a fold.
    pub(crate) is_in_loop: bool,
}

/// Loads that have their elements in one row of an operand.
#[derive(Debug)]
pub(crate) struct RowOfLoads {
    /// One of them.
    pub(crate) one: Load,
    /// Their numbers in the program, and their coordinates along the row.
    pub(crate) loads: Vec<(u32, Along)>,
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
    /// Computes one operation.
    Operation(What, Target),
    /// Copies a value.
    Copy { from: Source, to: Target },
    /// Repeats the steps up to the end of a loop: its number in the program's list.
    Loop(u32),
    /// Computes chains: their number in the program's list.
    Chains(u32),
}

/// The iterations of a fold.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub(crate) fold: u32,
    /// The step behind the last one of an iteration.
    pub(crate) end: usize,
    /// The program's loads that differ between iterations.
    pub(crate) loads: Vec<u32>,
    /// What each iteration leaves for the next one: two registers of a type, which change their places. The
    /// first one has the state.
    pub(crate) swaps: Vec<(Kind, [u32; 2])>,
}

/// Chains of one type that are computed together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chains {
    /// The links, one chain after the other.
    pub(crate) links: Vec<Link>,
    /// The loads that are operands of links: their numbers among those that the program needs. They have an
    /// element for each point.
    pub(crate) loads: Vec<u32>,
    /// The numbers that are operands of links: literals, and loads of one element for all points.
    pub(crate) numbers: Vec<Source>,
    /// Whether no other step uses the registers of the links, and no result of the program is in them. Then a
    /// register has to hold the results of one strip only, or of two vectors.
    pub(crate) are_alone: bool,
}

/// A part of a chain. A chain is a sequence of operations. Each one after the first uses the result of the
/// one before, its accumulator operand, and nothing else uses that result. The first link of a chain takes a
/// value, the next ones join the result so far with their other operands, and the last one stores the result.
///
/// An example, where `u` and `v` are loads: `a = u - v`, `b = a * 2.0`, `c = b + v` is the chain
/// `TakeLoad(u)`, `SubLoad(v)`, `MulNumber(2.0)`, `AddLoad(v)`, `Store(c)`.
///
/// One variant says both what a link does and where its operands are, because to branch twice takes longer
/// than a vector operation. The numbers of operands are those of [`With`]. That of `Store` is the register of
/// the result, and that of `Set` the place of an output in the program's list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Link {
    TakeLoad(u32),
    TakeNumber(u32),
    TakeRegister(u32),
    AddLoad(u32),
    AddNumber(u32),
    AddRegister(u32),
    SubLoad(u32),
    SubNumber(u32),
    SubRegister(u32),
    SubFromLoad(u32),
    SubFromNumber(u32),
    SubFromRegister(u32),
    MulLoad(u32),
    MulNumber(u32),
    MulRegister(u32),
    /// Takes the sum of two loads.
    TakeLoads([u32; 2]),
    /// Adds two loads, one after the other.
    AddLoads([u32; 2]),
    AddScaled(Scaled),
    SubScaled(Scaled),
    Store(u32),
    Set(u32),
}

/// The product of a load and a number, as the operand of a link. A product that is a chain of its own would
/// have to be stored and loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaled {
    /// See [`With::Load`].
    pub(crate) load: u32,
    /// See [`With::Number`].
    pub(crate) number: u32,
}

/// The operand of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) enum With {
    /// A load of an element for each point: its place in the list of its chains.
    Load(u32),
    /// A number that all points have: its place in the list of its chains.
    Number(u32),
    /// A register of the type of the chain.
    Register(u32),
}

/// What a link does with the result so far and its operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Join {
    /// Begins a chain with the operand.
    Take,
    Add,
    /// The result so far minus the operand.
    Sub,
    /// The operand minus the result so far.
    SubFrom,
    Mul,
}

impl Link {
    /// A link that joins the result so far with its operand.
    pub(crate) fn new(join: Join, with: With) -> Self {
        match (join, with) {
            (Join::Take, With::Load(at)) => Self::TakeLoad(at),
            (Join::Take, With::Number(at)) => Self::TakeNumber(at),
            (Join::Take, With::Register(at)) => Self::TakeRegister(at),
            (Join::Add, With::Load(at)) => Self::AddLoad(at),
            (Join::Add, With::Number(at)) => Self::AddNumber(at),
            (Join::Add, With::Register(at)) => Self::AddRegister(at),
            (Join::Sub, With::Load(at)) => Self::SubLoad(at),
            (Join::Sub, With::Number(at)) => Self::SubNumber(at),
            (Join::Sub, With::Register(at)) => Self::SubRegister(at),
            (Join::SubFrom, With::Load(at)) => Self::SubFromLoad(at),
            (Join::SubFrom, With::Number(at)) => Self::SubFromNumber(at),
            (Join::SubFrom, With::Register(at)) => Self::SubFromRegister(at),
            (Join::Mul, With::Load(at)) => Self::MulLoad(at),
            (Join::Mul, With::Number(at)) => Self::MulNumber(at),
            (Join::Mul, With::Register(at)) => Self::MulRegister(at),
        }
    }

    /// One link that does what this one and the next one do.
    pub(crate) fn with_next(self, next: Self) -> Option<Self> {
        match (self, next) {
            (Self::TakeLoad(a), Self::AddLoad(b)) => Some(Self::TakeLoads([a, b])),
            (Self::AddLoad(a), Self::AddLoad(b)) => Some(Self::AddLoads([a, b])),
            _ => None,
        }
    }
}

/// An operation that can be a link of a chain.
#[derive(Clone, Copy)]
pub(crate) struct Linkable {
    /// What the operation does if the first operand is the accumulator operand, and if the second one is.
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

    /// Whether the operation adds this operand to the other one, or subtracts it from the other one.
    pub(crate) fn adds_or_subtracts(self, operand: Id) -> bool {
        matches!(self.join(self.other(operand)).0, Join::Add | Join::Sub)
    }

    /// The other operand.
    pub(crate) fn other(self, operand: Id) -> Id {
        let [a, b] = self.operands;
        if a == operand { b } else { a }
    }

    /// What the operation does if `so_far` is the accumulator operand, and the other operand. If both
    /// operands are the same value, the first one is the accumulator operand.
    pub(crate) fn join(self, so_far: Id) -> (Join, Id) {
        let [a, b] = self.operands;
        if so_far == a { (self.joins[0], b) } else { (self.joins[1], a) }
    }
}

/// The memory of a value.
pub(crate) fn bytes(kind: Kind) -> usize {
    match kind {
        Kind::Bool => 1,
        Kind::F32 | Kind::I32 | Kind::U32 => 4,
        Kind::F64 | Kind::I64 | Kind::U64 => 8,
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
        kinds.into_iter().map(|kind| self.of(kind) * bytes(kind)).sum()
    }
}
