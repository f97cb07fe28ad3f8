//! What is on a tape: the operations of a kernel and what belongs to them. Their memory goes from one tape of
//! a thread to the next.

use crate::{
    error::RecordError,
    fold::{Fold, State},
    number::{Kind, Scalar},
    operation::{Id, Load, Operation, What},
    operator::Operator,
};
use rustc_hash::FxHashMap;
use std::{cell::RefCell, mem, panic::Location};

/// What a kernel does with an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Operand {
    pub(crate) kind: Kind,
    pub(crate) is_written: bool,
    /// How values are combined into it, if it is no array of an element for each point. It is not written
    /// then.
    pub(crate) reduction: Option<Combination>,
}

/// How values are combined into an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Combination {
    pub(crate) operator: Operator,
    pub(crate) includes_current: bool,
}

/// Memory for more operations than this is not kept, because each later tape would have to clear a large map.
const MOST_SPARE: usize = 256;

thread_local! {
    /// What the last tape and the last recording of this thread have left, without elements: the next tape
    /// uses their memory.
    static SPARE: RefCell<Option<Box<TapeContents>>> = const { RefCell::new(None) };
}

/// What is on a tape.
#[derive(Default)]
pub(crate) struct TapeContents {
    pub(crate) operations: Vec<Operation>,
    /// The numbers of operations that are on the tape, except loads and literals: a second operation with the
    /// same inputs is the same one.
    pub(crate) known: FxHashMap<Operation, Id>,
    pub(crate) parameters: Vec<Scalar>,
    /// The parameter that is the number of the replay.
    pub(crate) replay: Option<u32>,
    pub(crate) folds: Vec<Fold>,
    /// The fold that each operation belongs to.
    pub(crate) scopes: Vec<Option<u32>>,
    /// Where the program asks for each fold.
    folded: Vec<&'static Location<'static>>,
    /// The folds whose closures run now.
    open: Vec<u32>,
    pub(crate) loads: Vec<Load>,
    /// The operation of each load.
    pub(crate) taken: Vec<Id>,
    /// Where the program asks for each load.
    pub(crate) asked: Vec<&'static Location<'static>>,
    pub(crate) operands: Vec<Operand>,
    /// What each operand is set to, and where.
    pub(crate) stores: Vec<Option<(Id, &'static Location<'static>)>>,
    pub(crate) error: Option<RecordError>,
}

/// Takes what the last tape of this thread has left: no elements, and memory for some.
pub(crate) fn take_spare() -> Box<TapeContents> {
    // A thread that ends may have nothing spare any more.
    SPARE.try_with(RefCell::take).ok().flatten().unwrap_or_default()
}

/// Keeps what a tape has left for the next tape of this thread.
pub(crate) fn keep(mut contents: Box<TapeContents>) {
    contents.clear();
    // Without it, the next tape asks for memory.
    let _ = SPARE.try_with(|spare| spare.replace(Some(contents)));
}

impl TapeContents {
    /// Whether the kernel is right.
    pub(crate) fn check(&mut self) -> Result<(), RecordError> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let is_missing = |&operand: &usize| {
            let Operand { is_written, reduction, .. } = self.operands[operand];
            (is_written || reduction.is_some()) && self.stores[operand].is_none()
        };
        match (0..self.operands.len()).find(is_missing) {
            Some(operand) if self.operands[operand].is_written => Err(RecordError::NeverSet { operand }),
            Some(operand) => Err(RecordError::NeverCombined { operand }),
            None => Ok(()),
        }
    }

    /// Forgets all elements, and the memory of a large kernel.
    fn clear(&mut self) {
        if self.known.capacity() > MOST_SPARE {
            *self = Self::default();
            return;
        }
        let Self {
            operations,
            known,
            parameters,
            replay,
            folds,
            scopes,
            folded,
            open,
            loads,
            taken,
            asked,
            operands,
            stores,
            error,
        } = self;
        operations.clear();
        known.clear();
        parameters.clear();
        *replay = None;
        folds.clear();
        scopes.clear();
        folded.clear();
        open.clear();
        loads.clear();
        taken.clear();
        asked.clear();
        operands.clear();
        stores.clear();
        *error = None;
    }

    pub(crate) fn push(&mut self, operation: Operation, scope: Option<u32>) -> Id {
        self.operations.push(operation);
        self.scopes.push(scope);
        self.operations.len() as Id - 1
    }

    /// The fold that an operation belongs to: of those of its inputs, the innermost one, which began last.
    pub(crate) fn scope(&mut self, what: What) -> Option<u32> {
        if self.folds.is_empty() {
            return None;
        }
        if let What::Load(load) = what {
            let load = self.loads[load as usize];
            load.along.iter().for_each(|along| self.expect_open(along.counter));
            return load.fold();
        }
        let scopes = what.inputs().map(|input| {
            self.expect_inside(input);
            self.scopes[input as usize]
        });
        scopes.max().flatten()
    }

    /// Fails if a fold has ended.
    fn expect_open(&mut self, scope: Option<u32>) {
        if let Some(fold) = scope
            && !self.open.contains(&fold)
        {
            self.is_outside(fold);
        }
    }

    /// Fails if an operation belongs to a fold that has ended.
    pub(crate) fn expect_inside(&mut self, id: Id) {
        self.expect_open(self.scopes[id as usize]);
    }

    pub(crate) fn is_outside(&mut self, fold: u32) {
        let fold = self.folded[fold as usize];
        self.error.get_or_insert(RecordError::OutsideOfFold { fold });
    }

    /// Begins a fold. Returns its number, and the values of its state in an iteration.
    pub(crate) fn open(
        &mut self,
        range: [u32; 2],
        firsts: &[(Id, Kind)],
        at: &'static Location<'static>,
    ) -> (u32, Vec<Id>) {
        let (fold, parent) = (self.folds.len() as u32, self.open.last().copied());
        firsts.iter().for_each(|&(first, _)| self.expect_inside(first));
        let begin = self.push(Operation { what: What::BeginIteration(fold), kind: Kind::U32 }, Some(fold));
        let states: Vec<State> = (0..)
            .zip(firsts)
            .map(|(at, &(first, kind))| {
                let now = self.push(Operation { what: What::State(fold, at), kind }, Some(fold));
                State { kind, first, now, next: now, result: now }
            })
            .collect();
        let now = states.iter().map(|state| state.now).collect();
        self.folds.push(Fold { range, parent, begin, end: begin, states });
        self.folded.push(at);
        self.open.push(fold);
        (fold, now)
    }

    /// Ends a fold. Returns the values of its state after the last iteration.
    pub(crate) fn close(&mut self, fold: u32, next: &[(Id, Kind)]) -> Vec<Id> {
        next.iter().for_each(|&(next, _)| self.expect_inside(next));
        self.open.pop();
        let parent = self.open.last().copied();
        let end = self.push(Operation { what: What::EndIteration(fold), kind: Kind::U32 }, Some(fold));
        let results: Vec<Id> = (0..)
            .zip(next)
            .map(|(at, &(_, kind))| self.push(Operation { what: What::Folded(fold, at), kind }, parent))
            .collect();
        let of = &mut self.folds[fold as usize];
        of.end = end;
        for (state, (&(next, _), &result)) in of.states.iter_mut().zip(next.iter().zip(&results)) {
            (state.next, state.result) = (next, result);
        }
        results
    }
}

/// Keeps the memory of a recording that is not needed any more for the next tape of this thread.
pub(crate) fn reuse(
    operations: &mut Vec<Operation>,
    loads: &mut Vec<Load>,
    operands: &mut Vec<Operand>,
    parameters: &mut Vec<Scalar>,
    asked: &mut Vec<&'static Location<'static>>,
) {
    if operations.capacity() > MOST_SPARE {
        return;
    }
    let _ = SPARE.try_with(|spare| {
        // While a tape is in use, nothing is spare.
        let mut spare = spare.try_borrow_mut().ok()?;
        let spare = spare.as_deref_mut()?;
        take_memory(&mut spare.operations, operations);
        take_memory(&mut spare.loads, loads);
        take_memory(&mut spare.operands, operands);
        take_memory(&mut spare.parameters, parameters);
        take_memory(&mut spare.asked, asked);
        Some(())
    });
}

/// Gives the memory of a vector to another one, which is empty.
fn take_memory<T>(to: &mut Vec<T>, from: &mut Vec<T>) {
    from.clear();
    *to = mem::take(from);
}
