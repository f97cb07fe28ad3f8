//! The liveness of results: what needs each one, and until when. It also finds the chains among the
//! operations.
//!
//! The operations of a kernel become chains where they can: see [`Link`](crate::steps::Link). In each
//! operation of a chain after the first, one operand is the result of the operation before. It is the
//! *accumulator operand*. All operations of a chain are done at the place of its last one.
//!
//! An example of three operations, where `u` and `v` are loads and an operand is set to `c`:
//!
//! ```text
//! a = u - v
//! b = a * 2.0
//! c = b + v
//! ```
//!
//! These are one chain, because nothing else uses `a` and `b`. The accumulator operand of `b` is `a`, and
//! that of `c` is `b`; `a` has none. The *last use* of `u`, `v`, 2.0, `a` and `b` is `c`, the end of the
//! chain, and that of `c` is [`RESULT`]. If the last operation were `c = b + v * 3.0`, the product would be a
//! part of its link ([`Product`]).

use crate::{
    operation::{Binary, Id, Row, What},
    recording::Body,
    steps::Linkable,
};

/// The last use of a result that an operand is set to.
pub(crate) const RESULT: Id = Id::MAX;

/// What is known of the operations of a recording before it is a program.
pub(crate) struct Liveness {
    /// The last use of the result of each operation: the last operation at whose place it is used, or
    /// [`RESULT`]; `None` if nothing needs the result. The operations of a chain are done at the place of its
    /// last one.
    last: Vec<Option<Id>>,
    /// The accumulator operand of each operation that goes on with a chain.
    continued: Vec<Option<Id>>,
    /// The other operand of each operation, if it is a product that is a part of the link.
    products: Vec<Option<Product>>,
    /// Whether the result of each operation goes to the next link of its chain, and nowhere else.
    is_inside: Vec<bool>,
    /// How many operations need the result of each one, and how many operands are set to it.
    count: Vec<u32>,
    /// The fold in whose iterations each operation is done.
    scopes: Vec<Option<u32>>,
}

impl Liveness {
    pub(crate) fn new(body: &Body) -> Self {
        let (count, scopes) = (counts(body), body.scopes());
        let operations = &body.operations;
        let mut liveness = Self {
            last: vec![None; operations.len()],
            continued: vec![None; operations.len()],
            products: vec![None; operations.len()],
            is_inside: vec![false; operations.len()],
            count: Vec::new(),
            scopes: Vec::new(),
        };
        for &(_, id) in &body.stores {
            liveness.last[id as usize] = Some(RESULT);
        }
        // The place of each operation.
        let mut place: Vec<Id> = (0..operations.len() as Id).collect();
        for id in (0..operations.len()).rev().filter(|&id| count[id] > 0) {
            body.inputs(id as Id, |input| {
                let used = repeated(body, &scopes, input, id).unwrap_or(place[id]);
                let last = &mut liveness.last[input as usize];
                *last = (*last).max(Some(used));
            });
            let Some(linkable) = Linkable::new(operations[id]) else { continue };
            let [a, b] = linkable.operands;
            let can_be_inside = |&operand: &Id| {
                let at = operand as usize;
                // What is computed once before a loop is no part of its chains.
                count[at] == 1 && scopes[at] == scopes[id] && Linkable::new(operations[at]).is_some()
            };
            // The accumulator operand is the later one. If the other one is a chain too, that chain ends
            // before.
            let both = [a.max(b), a.min(b)];
            let can_be_scaled = |operand: &Id| linkable.adds_or_subtracts(*operand) && can_be_inside(operand);
            let product =
                both.into_iter().filter(can_be_scaled).find_map(|operand| Product::of(body, operand));
            let scaled = product.map(|product| product.operation);
            let continued =
                both.into_iter().find(|operand| Some(*operand) != scaled && can_be_inside(operand));
            (liveness.products[id], liveness.continued[id]) = (product, continued);
            for operand in scaled.into_iter().chain(continued) {
                liveness.is_inside[operand as usize] = true;
                place[operand as usize] = place[id];
            }
        }
        (liveness.count, liveness.scopes) = (count, scopes);
        liveness
    }

    /// The fold in whose iterations an operation is done.
    pub(crate) fn scope(&self, id: Id) -> Option<u32> {
        self.scopes[id as usize]
    }

    pub(crate) fn is_needed(&self, id: Id) -> bool {
        self.last[id as usize].is_some()
    }

    /// Whether the result is needed once: by an operation, or by an operand that is set to it.
    pub(crate) fn is_needed_once(&self, id: Id) -> bool {
        self.count[id as usize] == 1
    }

    /// Whether no later step than that of `user` needs the result.
    pub(crate) fn ends_at(&self, id: Id, user: Id) -> bool {
        self.last[id as usize] == Some(user)
    }

    /// The accumulator operand of an operation, if it goes on with a chain.
    pub(crate) fn continued(&self, id: Id) -> Option<Id> {
        self.continued[id as usize]
    }

    /// The operand of an operation that is a product and a part of the link.
    pub(crate) fn product(&self, id: Id) -> Option<Product> {
        self.products[id as usize]
    }

    /// Whether the result goes to the next link of its chain, and nowhere else.
    pub(crate) fn is_inside(&self, id: Id) -> bool {
        self.is_inside[id as usize]
    }
}

/// An operation that multiplies a load of an element for each point by a number.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    pub(crate) operation: Id,
    pub(crate) load: Id,
    pub(crate) number: Id,
}

impl Product {
    fn of(body: &Body, operation: Id) -> Option<Self> {
        let What::Binary(Binary::Mul, a, b) = body.operations[operation as usize].what else { return None };
        // A load that an operand is set to may be copied to a register.
        let is_set = |id: Id| body.stores.iter().any(|&(_, set)| set == id);
        let row = |id: Id| match body.operations[id as usize].what {
            What::Load(load) if !is_set(id) => Some(body.loads[load as usize].row()),
            _ => None,
        };
        let is_load = |id: Id| matches!(row(id), Some(Row::Contiguous | Row::Apart));
        let is_parameter = |id: Id| matches!(body.operations[id as usize].what, What::Parameter(_));
        let is_number = |id: Id| is_parameter(id) || row(id) == Some(Row::Same);
        let [load, number] = [[a, b], [b, a]].into_iter().find(|&[a, b]| is_load(a) && is_number(b))?;
        Some(Self { operation, load, number })
    }
}

/// The last use of a value from outside of a fold, if an iteration uses it: the end of the outermost fold
/// that the value is outside of, because each iteration needs it again.
fn repeated(body: &Body, scopes: &[Option<u32>], input: Id, user: usize) -> Option<Id> {
    let of = scopes[input as usize];
    let mut by = match body.operations[user].what {
        // The first state is taken before the first iteration.
        What::BeginIteration(fold) => body.folds[fold as usize].parent,
        // The result is a register of the fold, which is beside it.
        What::Folded(..) => return None,
        _ => scopes[user],
    };
    let mut end = None;
    while by != of {
        let fold = &body.folds[by.expect("a value is used in its fold or in one inside of it") as usize];
        (end, by) = (Some(fold.end), fold.parent);
    }
    end
}

/// See [`Liveness::count`].
fn counts(body: &Body) -> Vec<u32> {
    let mut count = vec![0; body.operations.len()];
    for &(_, id) in &body.stores {
        count[id as usize] += 1;
    }
    for id in (0..body.operations.len()).rev() {
        if count[id] > 0 {
            body.inputs(id as Id, |input| count[input as usize] += 1);
        }
    }
    count
}
