//! Folds: loops of a recording, and the order in which a program does them.
//!
//! A fold has four sorts of operations: `BeginIteration` begins an iteration, and its result is the counter;
//! `State` is a value of the state at the beginning of an iteration; `EndIteration` makes what the iteration
//! has computed the next state; `Folded` is a value of the state after the last iteration. An operation
//! belongs to the innermost fold whose counter or state it depends on. What depends on none is computed once,
//! before the loop, wherever the closure asks for it.

use crate::{
    number::{Kind, Number as _, Scalar},
    operation::{Id, Operation, What},
};

/// The value of a literal that counts elements.
pub(crate) fn count(parameters: &[Scalar], number: u32) -> u32 {
    u32::of_scalar(parameters[number as usize]).expect("the literals are those of a recording of the program")
}

/// A loop. Its counter goes from the value of one literal to below that of another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fold {
    pub(crate) range: [u32; 2],
    /// The fold in whose iterations this one is done.
    pub(crate) parent: Option<u32>,
    /// Its `BeginIteration` and its `EndIteration`.
    pub(crate) begin: Id,
    pub(crate) end: Id,
    pub(crate) states: Vec<State>,
}

/// A value of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) kind: Kind,
    /// What it is before the first iteration.
    pub(crate) first: Id,
    /// Its `State`.
    pub(crate) now: Id,
    /// What it is after an iteration.
    pub(crate) next: Id,
    /// Its `Folded`.
    pub(crate) result: Id,
}

impl Fold {
    /// The first value of the counter, and the one behind the last.
    pub(crate) fn counts(&self, parameters: &[Scalar]) -> [u32; 2] {
        self.range.map(|number| count(parameters, number))
    }

    /// Gives the operations of the fold their new numbers.
    pub(crate) fn rename(&mut self, new: &[Id]) {
        let renamed = |id: &mut Id| *id = new[*id as usize];
        [&mut self.begin, &mut self.end].into_iter().for_each(renamed);
        for State { first, now, next, result, .. } in &mut self.states {
            [first, now, next, result].into_iter().for_each(renamed);
        }
    }
}

/// Whether a fold has no iteration, or is in one that has none.
pub(crate) fn is_never(folds: &[Fold], mut fold: Option<u32>, parameters: &[Scalar]) -> bool {
    while let Some(number) = fold {
        let [from, to] = folds[number as usize].counts(parameters);
        if from >= to {
            return true;
        }
        fold = folds[number as usize].parent;
    }
    false
}

/// Puts the operations of each fold one after the other, from its `BeginIteration` to its `EndIteration`.
/// `scopes` has the fold that each operation belongs to. Returns the new number of each operation.
pub(crate) fn put_in_order(
    operations: &mut Vec<Operation>,
    folds: &mut [Fold],
    scopes: &[Option<u32>],
) -> Vec<Id> {
    let mut outside: Vec<Id> = Vec::with_capacity(operations.len());
    let mut iterations: Vec<Vec<Id>> = vec![Vec::new(); folds.len()];
    for (id, operation) in operations.iter().enumerate() {
        let own = scopes[id].map(|fold| fold as usize);
        own.map_or(&mut outside, |fold| &mut iterations[fold]).push(id as Id);
        if let What::EndIteration(fold) = operation.what {
            let done = std::mem::take(&mut iterations[fold as usize]);
            let parent = folds[fold as usize].parent.map(|fold| fold as usize);
            parent.map_or(&mut outside, |fold| &mut iterations[fold]).extend(done);
        }
    }
    let mut new = vec![0; operations.len()];
    (0..).zip(&outside).for_each(|(at, &id)| new[id as usize] = at);
    let renamed = |id: &mut Id| *id = new[*id as usize];
    let mut ordered: Vec<_> = outside.iter().map(|&id| operations[id as usize]).collect();
    ordered
        .iter_mut()
        .for_each(|operation| operation.what.inputs_mut().into_iter().flatten().for_each(renamed));
    *operations = ordered;
    folds.iter_mut().for_each(|fold| fold.rename(&new));
    new
}
