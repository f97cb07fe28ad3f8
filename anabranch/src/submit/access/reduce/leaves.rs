//! The results of the leaves of a recorded kernel, which are combined as [`Leaves`](anabranch_kernel::Leaves)
//! says.

use super::{BoundReduction, Operation, exchange::Exchange};
use crate::{data::element::Element, submit::access::operator::Operator};
use anabranch_kernel::combine_leaves;
use std::mem;

impl<T: Element, const D: usize, O: Operator<T>> BoundReduction<T, D, O> {
    /// The number of leaves of the only chunk.
    pub(in crate::submit) fn leaves_of_chunk(&self) -> Option<usize> {
        self.leaves.as_ref().and_then(|leaves| leaves.first().copied())
    }

    /// Sets the results of the leaves of the only chunk, which a device has computed.
    pub(in crate::submit) fn put_leaves(&self, results: &[u8]) {
        let results = results.chunks_exact(size_of::<T>()).map(bytemuck::checked::pod_read_unaligned);
        *self.partials[0].lock() = results.collect();
    }

    /// Combines the results of all leaves, with what the buffer has before the first if that takes part.
    /// Returns the result; `None` if the contents of the buffer stay, or if it is not known yet, because
    /// other nodes have leaves.
    pub(super) fn finish_leaves(&self, current: Option<T>) -> Option<T> {
        let mut leaves: Vec<T> =
            self.partials.iter().flat_map(|partial| mem::take(&mut *partial.lock())).collect();
        let operator = self.operator();
        if let (Some(first), Some(current)) = (leaves.first_mut(), current) {
            *first = operator.combine(current, *first);
        }
        match &self.operation {
            Operation::Nodes(exchange) => {
                exchange.finish_leaves(&mut leaves);
                None
            }
            Operation::OneNode(_) => {
                let all = combine_leaves(&mut leaves, |a, b| operator.combine(a, b));
                // Over an empty index space.
                all.or_else(|| (!self.include_current).then(|| operator.identity()))
            }
        }
    }
}

impl<T: Element, O: Operator<T>> Exchange<T, O> {
    /// Combines the leaves of this node, as far as they form subtrees.
    fn finish_leaves(&self, leaves: &mut [T]) {
        let first = self.first_leaf();
        let at = |leaf: u32| (leaf - first) as usize;
        let own = self.own_parts().iter().map(|part| {
            let subtree = &mut leaves[at(part.start)..at(part.end)];
            combine_leaves(subtree, |a, b| self.operator().combine(a, b)).expect("a subtree has leaves")
        });
        self.set_own(own.collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_graph::command::combine;
    use testing::deadline;

    #[test]
    fn results_side_by_side_are_combined_in_the_tree_of_the_graph() {
        let _deadline = deadline();
        let mix = |a: u64, b: u64| (a.rotate_left(7) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        assert_eq!(combine_leaves(&mut [], mix), None);
        for count in 1..200 {
            let mut results: Vec<_> = (0..count).map(u64::from).collect();
            let expected = combine(0..count, (0..count).map(|at| (at..at + 1, u64::from(at))), mix);
            assert_eq!(combine_leaves(&mut results, mix), Some(expected), "{count}");
        }
    }
}
