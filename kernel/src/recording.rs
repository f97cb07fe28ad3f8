//! What a closure has left on its tape.

use crate::{
    number::{Kind, Scalar},
    operation::{Edge, Load, Operation},
    reduction::Reduction,
    tape::{Combination, Inner, Operand},
};
use rustc_hash::FxHasher;
use std::{
    hash::{Hash, Hasher},
    panic::Location,
};

/// A kernel that was recorded: its operations, and the values of its literals.
///
/// Two recordings with equal operations are one [`Program`](crate::Program), whatever the values of their literals are.
#[derive(Clone, Debug)]
pub struct Recording {
    pub(crate) body: Body,
    parameters: Vec<Scalar>,
    asked: Vec<&'static Location<'static>>,
}

/// What a program is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Body {
    pub(crate) dimensions: usize,
    pub(crate) operands: Vec<Operand>,
    pub(crate) loads: Vec<Load>,
    pub(crate) operations: Vec<Operation>,
    /// The operands that are set or combined into, and the operations whose results they get.
    pub(crate) stores: Vec<(usize, u32)>,
}

impl Body {
    /// The operands that are set at each point, and the operations whose results they get.
    pub(crate) fn results(&self) -> impl Iterator<Item = (usize, u32)> {
        self.stores.iter().copied().filter(|&(operand, _)| self.operands[operand].reduction.is_none())
    }

    /// The reductions, and the operations whose results they combine.
    pub(crate) fn reductions(&self) -> impl Iterator<Item = (Reduction, u32)> {
        self.stores.iter().filter_map(|&(operand, id)| {
            let Operand { kind, reduction, .. } = self.operands[operand];
            let Combination { operator, includes_current } = reduction?;
            Some((Reduction { operand, kind, operator, includes_current }, id))
        })
    }
}

/// An element that a recording takes: at an offset from the point.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The number of the operand, in the order of the declaration, from 0.
    pub operand: usize,
    /// The offset, padded with zeros at the front.
    pub offset: [isize; 3],
    /// What the element is where the offset leads out of the buffer.
    pub beyond: Beyond,
    /// Where the closure asks for the element.
    pub at: &'static Location<'static>,
}

/// What an element is where its offset leads out of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// An error.
    Refused,
    /// The nearest element.
    Nearest,
    /// The element on the other side.
    OtherSide,
    /// A value, which is in no buffer.
    Value,
}

impl Recording {
    pub(crate) fn new(dimensions: usize, tape: Inner) -> Self {
        let Inner { operations, loads, asked, operands, stores, parameters, .. } = tape;
        let stores = stores.iter().enumerate();
        let stores = stores.filter_map(|(operand, store)| store.map(|(id, _)| (operand, id))).collect();
        Self { body: Body { dimensions, operands, loads, operations, stores }, parameters, asked }
    }

    /// The values of the literals, in the order in which the closure has used them.
    pub fn parameters(&self) -> &[Scalar] {
        &self.parameters
    }

    /// The elements that the kernel takes.
    pub fn accesses(&self) -> impl Iterator<Item = Access> {
        self.body.loads.iter().zip(&self.asked).map(|(load, &at)| Access {
            operand: load.operand,
            offset: load.offset,
            beyond: match load.edge {
                Edge::Inside => Beyond::Refused,
                Edge::Clamped => Beyond::Nearest,
                Edge::Periodic => Beyond::OtherSide,
                Edge::Parameter(_) => Beyond::Value,
            },
            at,
        })
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.body.operations.len()
    }

    /// Whether there is no operation: the kernel has no operand.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The types of the operands, in the order of their declaration.
    pub fn operands(&self) -> impl Iterator<Item = Kind> {
        self.body.operands.iter().map(|operand| operand.kind)
    }

    /// The number of dimensions of the index space.
    pub fn dimensions(&self) -> usize {
        self.body.dimensions
    }

    /// The operands that the kernel sets.
    pub fn results(&self) -> impl Iterator<Item = usize> {
        self.body.results().map(|(operand, _)| operand)
    }

    /// The reductions.
    pub fn reductions(&self) -> impl Iterator<Item = Reduction> {
        self.body.reductions().map(|(reduction, _)| reduction)
    }

    /// A number that is equal for recordings of one program.
    pub fn program_hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.body.hash(&mut hasher);
        hasher.finish()
    }
}
