//! The fixed shape in which the partial results of a reduction are combined.
//!
//! The tree over several leaves combines two trees: one over the largest power of two of leaves that is less
//! than all, and one over the rest. So neighbours are combined first, then neighbours of those, and so on.
//! The shape depends only on the number of leaves, so the result has the same bits on any number of nodes. A
//! node with the partial results of consecutive leaves can combine those that form whole [`subtrees`], and
//! send fewer.

use anabranch_grid::GridBox;
use std::ops::Range;

/// The largest number of leaves of a reduction over a small index space.
const LEAVES: usize = 64;

/// The number of points of an index space for which it gets one more leaf. The work for them takes much
/// longer than beginning a partial result and combining it.
const POINTS: usize = 1 << 15;

/// The number of points of an index space per element of a partial result, for the same reason.
const POINTS_PER_ELEMENT: usize = 1 << 9;

/// The largest number of leaves of a reduction, unless the program chooses another:
/// [`Hints::leaves`](super::Hints::leaves). It depends on the size of the index space and of the largest
/// buffer that is reduced to (`elements`), so that large reductions have leaves for many nodes and threads.
/// There are never more leaves than rows.
///
/// ```
/// use anabranch_graph::command::default_leaves;
/// use anabranch_grid::GridBox;
/// assert_eq!(default_leaves(&GridBox::full([1000, 1000, 1]), 1), 64);
/// assert_eq!(default_leaves(&GridBox::full([1 << 16, 1 << 12, 1]), 1), 1 << 13);
/// ```
pub fn default_leaves(space: &GridBox<3>, elements: usize) -> usize {
    let each = POINTS.max(elements.saturating_mul(POINTS_PER_ELEMENT));
    (space.len() / each).clamp(LEAVES, 1 << 16)
}

/// The largest subtrees of the tree over `0..leaves` that lie within `run`, ascending.
///
/// ```
/// use anabranch_graph::command::subtrees;
/// assert_eq!(subtrees(8, 1..8), [1..2, 2..4, 4..8]);
/// assert_eq!(subtrees(8, 0..8), [0..8]);
/// ```
pub fn subtrees(leaves: u32, run: Range<u32>) -> Vec<Range<u32>> {
    fn collect(tree: Range<u32>, run: &Range<u32>, found: &mut Vec<Range<u32>>) {
        if run.start <= tree.start && tree.end <= run.end {
            found.push(tree);
        } else if tree.start < run.end && run.start < tree.end {
            let middle = middle(&tree);
            collect(tree.start..middle, run, found);
            collect(middle..tree.end, run, found);
        }
    }
    let mut found = Vec::new();
    if !run.is_empty() {
        collect(0..leaves, &run, &mut found);
    }
    found
}

/// Combines the partial results of the tree over the leaves `tree`. The parts are subtrees, as [`subtrees`]
/// gives them, in ascending order.
///
/// ```
/// use anabranch_graph::command::combine;
/// let join = |a: String, b: String| format!("({a}{b})");
/// let text = |s: &str| s.to_string();
/// assert_eq!(combine(0..3, [(0..1, text("a")), (1..2, text("b")), (2..3, text("c"))], join), "((ab)c)");
/// assert_eq!(combine(0..3, [(0..2, text("(ab)")), (2..3, text("c"))], join), "((ab)c)");
/// ```
///
/// # Panics
/// If the parts are not subtrees of the tree, or do not cover it.
pub fn combine<T>(
    tree: Range<u32>,
    parts: impl IntoIterator<Item = (Range<u32>, T)>,
    mut operator: impl FnMut(T, T) -> T,
) -> T {
    fn rest<T>(
        tree: Range<u32>,
        parts: &mut impl Iterator<Item = (Range<u32>, T)>,
        ahead: &mut Option<(Range<u32>, T)>,
        operator: &mut impl FnMut(T, T) -> T,
    ) -> T {
        if ahead.is_none() {
            *ahead = parts.next();
        }
        if let Some((_, value)) = ahead.take_if(|(part, _)| *part == tree) {
            return value;
        }
        assert!(tree.len() > 1, "the partial results of leaf {} are missing", tree.start);
        let middle = middle(&tree);
        let first = rest(tree.start..middle, parts, ahead, operator);
        let second = rest(middle..tree.end, parts, ahead, operator);
        operator(first, second)
    }
    rest(tree, &mut parts.into_iter(), &mut None, &mut operator)
}

fn middle(tree: &Range<u32>) -> u32 {
    tree.start + (tree.end - tree.start).next_power_of_two() / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cut_gives_the_same_tree() {
        for leaves in 1..40 {
            let leaf = |i: u32| (i..i + 1, i.to_string());
            let join = |a: String, b: String| format!("({a} {b})");
            let expected = combine(0..leaves, (0..leaves).map(leaf), join);
            for cut in 0..=leaves {
                let parts = subtrees(leaves, 0..cut).into_iter().chain(subtrees(leaves, cut..leaves));
                let parts = parts.map(|part| (part.clone(), combine(part.clone(), part.map(leaf), join)));
                assert_eq!(combine(0..leaves, parts, join), expected, "{leaves} leaves cut at {cut}");
            }
        }
    }
}
