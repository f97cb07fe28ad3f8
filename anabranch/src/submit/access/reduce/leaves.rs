//! The results of the leaves of a recorded kernel, which are combined as [`Leaves`](anabranch_kernel::Leaves)
//! says.

use super::{BoundReduction, Operation, exchange::Exchange};
use crate::{data::element::Element, submit::access::operator::Operator};
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
                let all = combine_neighbours(operator, &mut leaves);
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
            combine_neighbours(self.operator(), subtree).expect("a subtree has leaves")
        });
        self.set_own(own.collect());
    }
}

/// Combines neighbours, then neighbours of those, and so on; `None` if there is nothing. This is the tree of
/// [`combine`](anabranch_graph::command::combine), for results that lie side by side.
fn combine_neighbours<T: Element, O: Operator<T>>(operator: &O, results: &mut [T]) -> Option<T> {
    let mut count = results.len();
    while count > 1 {
        for pair in 0..count / 2 {
            results[pair] = operator.combine(results[2 * pair], results[2 * pair + 1]);
        }
        if count % 2 == 1 {
            results[count / 2] = results[count - 1];
        }
        count = count.div_ceil(2);
    }
    results.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator;
    use anabranch_graph::command::combine;
    use testing::deadline;

    #[test]
    fn results_side_by_side_are_combined_in_the_tree_of_the_graph() {
        let _deadline = deadline();
        let mix = |a: u64, b: u64| (a.rotate_left(7) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let operator = operator(0, mix);
        assert_eq!(combine_neighbours(&operator, &mut []), None);
        for count in 1..200 {
            let mut results: Vec<_> = (0..count).map(u64::from).collect();
            let expected = combine(0..count, (0..count).map(|at| (at..at + 1, u64::from(at))), mix);
            assert_eq!(combine_neighbours(&operator, &mut results), Some(expected), "{count}");
        }
    }
}
