//! The partial results of a reduction on one of several nodes.

use crate::{
    data::{
        element::Element,
        partials::{Partials, Shares},
    },
    submit::access::operator::Operator,
};
use anabranch_graph::command;
use anabranch_par::flush_denormals;
use parking_lot::Mutex;
use std::{any::Any, ops::Range, sync::Arc};

/// The partial results of a reduction, from the end of the kernel until this node has combined them all.
pub(super) struct Exchange<T, O> {
    operator: O,
    /// The number of elements of a partial result.
    len: usize,
    shares: Shares,
    flush_denormals: bool,
    values: Arc<Values<T>>,
}

/// Partial results, without the operator: a transport may drop them last.
struct Values<T> {
    /// Those of this node. Set once, before they are sent.
    own: Mutex<Vec<T>>,
    /// Those of all nodes. Set once, before they arrive, and taken when they have.
    all: Mutex<Vec<T>>,
}

/// Combines each element of a partial result with the same element of another.
pub(super) fn combine_into<T: Element, O: Operator<T>>(operator: &O, left: &mut [T], right: &[T]) {
    left.iter_mut().zip(right).for_each(|(a, b)| *a = operator.combine(*a, *b));
}

impl<T: Element, O: Operator<T>> Exchange<T, O> {
    pub(super) fn new(operator: O, len: usize, shares: Shares, flush_denormals: bool) -> Self {
        let values = Arc::new(Values { own: Mutex::default(), all: Mutex::default() });
        Self { operator, len, shares, flush_denormals, values }
    }

    pub(super) fn operator(&self) -> &O {
        &self.operator
    }

    /// The subtrees of this node.
    pub(super) fn own_parts(&self) -> &[Range<u32>] {
        self.shares.own_parts()
    }

    /// The first leaf of this node; 0 if it has none.
    pub(super) fn first_leaf(&self) -> u32 {
        self.shares.first_leaf().unwrap_or(0)
    }

    /// Sets the partial results of this node.
    pub(super) fn set_own(&self, own: Vec<T>) {
        *self.values.own.lock() = own;
    }

    /// Whether this node has the first leaf.
    pub(super) fn has_first_leaf(&self) -> bool {
        self.shares.first_leaf() == Some(0)
    }

    /// Combines the leaves of this node, whose partial results `leaves` are, as far as they form subtrees.
    pub(super) fn finish(&self, leaves: &[Mutex<Vec<T>>]) {
        let mut own = Vec::with_capacity(self.shares.own().len() * self.len);
        let first = self.first_leaf();
        for part in self.shares.own_parts() {
            let leaf =
                |leaf: u32| (leaf..leaf + 1, std::mem::take(&mut *leaves[(leaf - first) as usize].lock()));
            own.extend(command::combine(part.clone(), part.clone().map(leaf), |mut left, right| {
                combine_into(&self.operator, &mut left, &right);
                left
            }));
        }
        self.set_own(own);
    }

    /// The elements of the partial results at these positions.
    fn at(&self, positions: Range<usize>) -> Range<usize> {
        positions.start * self.len..positions.end * self.len
    }

    /// Combines all partial results into the first, if there is one.
    fn combine_all(&self, all: &mut [T]) {
        let parts = self.shares.parts().iter().cloned().zip(0..);
        if self.shares.leaves() > 0 {
            command::combine(0..self.shares.leaves(), parts, |left: usize, right: usize| {
                let (before, after) = all.split_at_mut(right * self.len);
                combine_into(&self.operator, &mut before[self.at(left..left + 1)], &after[..self.len]);
                left
            });
        }
    }
}

impl<T: Element, O: Operator<T>> Partials for Exchange<T, O> {
    fn shares(&self) -> &Shares {
        &self.shares
    }

    fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    fn calls(&self) -> usize {
        self.shares.parts().len().saturating_sub(1) * self.len
    }

    fn own(&self) -> *const u8 {
        self.values.own.lock().as_ptr().cast()
    }

    fn make_room(&self) -> *mut u8 {
        let mut values = vec![T::zeroed(); self.shares.parts().len() * self.len];
        let own = self.values.own.lock();
        if !own.is_empty() {
            values[self.at(self.shares.own())].copy_from_slice(&own);
        }
        drop(own);
        let mut all = self.values.all.lock();
        *all = values;
        all.as_mut_ptr().cast()
    }

    fn memory(&self) -> Arc<dyn Any + Send + Sync> {
        Arc::clone(&self.values) as _
    }

    fn combine(&self, write: &mut dyn FnMut(&[u8])) {
        let mut all = std::mem::take(&mut *self.values.all.lock());
        let own = self.values.own.lock();
        if self.shares.are_all_own() {
            all.clone_from(&own);
        } else {
            // The kernel may have ended after the room was made.
            all[self.at(self.shares.own())].copy_from_slice(&own);
        }
        drop(own);
        if self.flush_denormals {
            flush_denormals(|| self.combine_all(&mut all));
        } else {
            self.combine_all(&mut all);
        }
        if self.shares.leaves() == 0 {
            // The index space is empty.
            all = vec![self.operator.identity(); self.len];
        }
        write(bytemuck::cast_slice(&all[..self.len]));
    }
}
