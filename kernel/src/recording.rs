//! What a closure has left on its tape.

use crate::{
    fold::{Fold, count, is_never, put_in_order},
    number::{Kind, Scalar},
    operation::{Edge, Id, Load, Operation, What},
    reduction::Reduction,
    tape_contents::{self, Combination, Operand, TapeContents},
};
use rustc_hash::FxHasher;
use std::{
    borrow::Cow,
    hash::{Hash, Hasher},
    mem,
    ops::Range,
    panic::Location,
};

/// A kernel that was recorded: its operations, and the values of its literals.
///
/// Two recordings with equal operations are one [`Program`](crate::Program), whatever the values of their
/// literals are.
#[derive(Clone, Debug)]
pub struct Recording {
    pub(crate) body: Body,
    pub(crate) parameters: Vec<Scalar>,
    /// The parameter that is the number of the replay.
    replay: Option<u32>,
    asked: Vec<&'static Location<'static>>,
}

/// What a program is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Body {
    pub(crate) dimensions: usize,
    pub(crate) operands: Vec<Operand>,
    pub(crate) loads: Vec<Load>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) folds: Vec<Fold>,
    /// The operands that are set or combined into, and the operations whose results they get.
    pub(crate) stores: Vec<(usize, u32)>,
    /// Whether the reductions end with the results of leaves.
    pub(crate) ends_at_leaves: bool,
}

/// The number of a replay, as a kernel computes with it.
pub fn replay_number(number: u64) -> Scalar {
    Scalar::U32(number as u32)
}

/// The elements that a recording takes at one place of its closure.
#[derive(Clone, Debug)]
pub struct Access {
    /// The number of the operand, in the order of the declaration, from 0.
    pub operand: usize,
    /// What it takes along each dimension of the operand. Dimensions are padded at the front, with the
    /// coordinate 0.
    pub along: [AccessAlong; 3],
    /// What an element is where its coordinates lead out of the buffer.
    pub beyond: Beyond,
    /// Where the closure asks for the element.
    pub at: &'static Location<'static>,
}

/// The coordinates that an access takes along one dimension of its operand. With none along one dimension, it
/// takes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessAlong {
    /// The dimension of the index space, padded at the front, whose coordinate of the point is added to the
    /// numbers.
    pub point: Option<usize>,
    /// The numbers.
    pub numbers: Range<isize>,
}

/// What an element is where its coordinates lead out of the buffer.
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

impl Load {
    /// What a load takes along each dimension, with these literals.
    pub(crate) fn reached(&self, folds: &[Fold], parameters: &[Scalar]) -> [AccessAlong; 3] {
        let is_never = is_never(folds, self.fold(), parameters);
        self.along.map(|along| {
            let from = along.offset + along.number.map_or(0, |number| count(parameters, number) as isize);
            let counter = along.counter.map(|fold| folds[fold as usize].counts(parameters));
            let [first, end] = counter.unwrap_or([0, 1]).map(|count| count as isize);
            let numbers = from + first..if is_never { from + first } else { from + end };
            AccessAlong { point: along.point.map(usize::from), numbers }
        })
    }
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

    /// Calls a function with the operations whose results one uses.
    #[inline]
    pub(crate) fn inputs(&self, id: Id, mut f: impl FnMut(Id)) {
        match self.operations[id as usize].what {
            What::BeginIteration(fold) => {
                self.folds[fold as usize].states.iter().for_each(|state| f(state.first))
            }
            What::EndIteration(fold) => {
                let fold = &self.folds[fold as usize];
                fold.states.iter().flat_map(|state| [state.next, state.now]).for_each(&mut f);
                f(fold.begin);
            }
            What::Folded(fold, _) => f(self.folds[fold as usize].end),
            what => what.inputs().for_each(f),
        }
    }

    /// The fold in whose iterations each operation is done.
    pub(crate) fn scopes(&self) -> Vec<Option<u32>> {
        let mut now = None;
        let scope = |operation: &Operation| match operation.what {
            What::BeginIteration(fold) => {
                now = Some(fold);
                now
            }
            What::EndIteration(fold) => mem::replace(&mut now, self.folds[fold as usize].parent),
            _ => now,
        };
        self.operations.iter().map(scope).collect()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let Self { body, parameters, asked, .. } = self;
        let Body { operations, loads, operands, .. } = body;
        tape_contents::reuse(operations, loads, operands, parameters, asked);
    }
}

impl Recording {
    /// Takes what is on a tape. What is left there has no meaning.
    pub(crate) fn new(dimensions: usize, tape: &mut TapeContents) -> Self {
        let (mut operations, mut folds) = (mem::take(&mut tape.operations), mem::take(&mut tape.folds));
        let (loads, asked) = (mem::take(&mut tape.loads), mem::take(&mut tape.asked));
        let (operands, parameters) = (mem::take(&mut tape.operands), mem::take(&mut tape.parameters));
        let stores = tape.stores.iter().enumerate();
        let mut stores: Vec<_> =
            stores.filter_map(|(operand, store)| store.map(|(id, _)| (operand, id))).collect();
        if !folds.is_empty() {
            let new = put_in_order(&mut operations, &mut folds, &tape.scopes);
            stores.iter_mut().for_each(|(_, id)| *id = new[*id as usize]);
        }
        let body = Body { dimensions, operands, loads, operations, folds, stores, ends_at_leaves: false };
        Self { body, parameters, replay: tape.replay, asked }
    }

    /// The values of the literals, in the order in which the closure has used them.
    /// [`precise`](Self::precise) adds zeros behind them.
    pub fn parameters(&self) -> &[Scalar] {
        &self.parameters
    }

    /// The literal that is the [number of the replay](crate::Output::replay): its place in
    /// [`parameters`](Self::parameters). `None` if the kernel does not use it, or if the recording is that
    /// [of one replay](Self::in_replay).
    pub fn replay_parameter(&self) -> Option<usize> {
        self.replay.map(|number| number as usize)
    }

    /// The same kernel for the replay with this number, which is a literal like others now.
    pub fn in_replay(&self, number: u64) -> Cow<'_, Self> {
        let Some(parameter) = self.replay_parameter() else { return Cow::Borrowed(self) };
        let mut recording = self.clone();
        recording.parameters[parameter] = replay_number(number);
        recording.replay = None;
        Cow::Owned(recording)
    }

    /// The elements that the kernel takes.
    pub fn accesses(&self) -> impl Iterator<Item = Access> {
        self.body.loads.iter().zip(&self.asked).map(|(load, &at)| Access {
            operand: load.operand,
            along: load.reached(&self.body.folds, &self.parameters),
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

    /// The same kernel, whose reductions end with the results of the [leaves](crate::Leaves). On a device
    /// each operand of a reduction gets these results, one after the other, and no number that it had before
    /// takes part. So the leaves of several parts of an index space, each of which begins and ends at bands,
    /// can be combined in the tree of the whole.
    pub fn ending_at_leaves(&self) -> Self {
        let mut at_leaves = self.clone();
        at_leaves.body.ends_at_leaves = true;
        let combinations =
            at_leaves.body.operands.iter_mut().filter_map(|operand| operand.reduction.as_mut());
        combinations.for_each(|combination| combination.includes_current = false);
        at_leaves
    }

    /// Whether the reductions end with the results of the leaves.
    pub fn ends_at_leaves(&self) -> bool {
        self.body.ends_at_leaves
    }

    /// A number that is equal for recordings of one program.
    pub fn program_hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        self.body.hash(&mut hasher);
        hasher.finish()
    }
}
