//! The paths among the steps of a pass: which dependencies of a step others imply.
//!
//! A step that overwrites what others read waits for these readers. Often it also reads what tasks after them have written. Then the
//! path over those tasks implies the wait, and the edge to the reader costs a link and a release in each pass for nothing.
//!
//! The cost of a search is bounded, so some edges stay that others imply.
//!
//! Steps are looked at in two passes, this one and the one before: a step depends on earlier ones of its own pass and on later ones
//! of the pass before. Their *places* count through both: step `i` has the place `i` in the pass before and `steps + i` in this one.

use smallvec::SmallVec;
use std::collections::BinaryHeap;

/// The number of dependencies that the search of one step looks at, at most. What lies farther keeps its edge.
const LOOKS: usize = 1024;

/// The steps that each step depends on.
#[derive(Debug)]
pub(super) struct Paths {
    before: Vec<SmallVec<[usize; 4]>>,
    /// For each place, one more than the number of the last step whose search has found it; 0 if none has.
    seen_by: Vec<usize>,
    /// The places whose dependencies the search has not looked at.
    open: BinaryHeap<usize>,
}

impl Paths {
    /// The paths among steps that depend on these others.
    pub(super) fn new(before: Vec<SmallVec<[usize; 4]>>) -> Self {
        let places = 2 * before.len();
        Self { before, seen_by: vec![0; places], open: BinaryHeap::new() }
    }

    /// The place of what the step at a place depends on. `None` if it is in an earlier pass.
    fn place(&self, place: usize, on: usize) -> Option<usize> {
        let steps = self.before.len();
        let (pass, step) = (place / steps, place % steps);
        let pass = if on < step { pass } else { pass.checked_sub(1)? };
        Some(pass * steps + on)
    }

    /// Visits the places that `step` of this pass comes after by a path of several edges, not farther back than the first of its
    /// dependencies.
    pub(super) fn visit(&mut self, step: usize) {
        let (here, mark) = (self.before.len() + step, step + 1);
        let direct: SmallVec<[usize; 8]> =
            self.before[step].iter().filter_map(|&on| self.place(here, on)).collect();
        let Some(&first) = direct.iter().min() else { return };
        self.open.clear();
        self.open.extend(direct);
        let mut looks = 0;
        // The latest first: a search that is cut off has then found what is near.
        while let Some(place) = self.open.pop()
            && looks < LOOKS
        {
            let before = &self.before[place % self.before.len()];
            looks += before.len();
            for &on in before {
                if let Some(earlier) = self.place(place, on)
                    && earlier >= first
                    && self.seen_by[earlier] != mark
                {
                    self.seen_by[earlier] = mark;
                    self.open.push(earlier);
                }
            }
        }
    }

    /// Whether the [visited](Self::visit) step comes after this dependency of it by a path of several edges.
    pub(super) fn implies(&self, step: usize, on: usize) -> bool {
        let place = self.place(self.before.len() + step, on);
        place.is_some_and(|place| self.seen_by[place] == step + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whether the step at a place comes after an earlier place, over at least this number of edges.
    fn comes_after(before: &[SmallVec<[usize; 4]>], place: usize, target: usize, edges: usize) -> bool {
        let steps = before.len();
        before[place % steps].iter().any(|&on| {
            let pass = place / steps;
            let Some(pass) = (if on < place % steps { Some(pass) } else { pass.checked_sub(1) }) else {
                return false;
            };
            let earlier = pass * steps + on;
            (earlier == target && edges <= 1)
                || earlier > target && comes_after(before, earlier, target, edges.saturating_sub(1))
        })
    }

    proptest! {
        #[test]
        fn an_edge_is_implied_if_there_is_a_longer_path(
            before in (1..9usize).prop_flat_map(|steps| {
                proptest::collection::vec(proptest::collection::btree_set(0..steps, 0..4), steps)
            }),
        ) {
            let before: Vec<SmallVec<[usize; 4]>> =
                before.into_iter().map(|on| on.into_iter().collect()).collect();
            let mut paths = Paths::new(before.clone());
            for (step, edges) in before.iter().enumerate() {
                paths.visit(step);
                for &on in edges {
                    let target = if on < step { before.len() + on } else { on };
                    let expected = comes_after(&before, before.len() + step, target, 2);
                    prop_assert_eq!(paths.implies(step, on), expected, "step {} on {}", step, on);
                }
            }
        }
    }

    /// Edges that are implied by very long paths stay.
    #[test]
    fn a_search_ends_after_a_while() {
        for (steps, implied) in [(LOOKS, true), (2 * LOOKS, false)] {
            // A chain, whose last step also depends on the first one.
            let mut before: Vec<SmallVec<[usize; 4]>> =
                (0..steps).map(|step| step.checked_sub(1).into_iter().collect()).collect();
            before[steps - 1].push(0);
            let mut paths = Paths::new(before);
            paths.visit(steps - 1);
            assert_eq!(paths.implies(steps - 1, 0), implied);
        }
    }
}
