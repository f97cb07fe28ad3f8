//! The paths among the steps of a pass: which dependencies of a step others imply.
//!
//! A step that overwrites what others read waits for these readers. Often it also reads what tasks after them
//! have written. Then the path over those tasks implies the wait, and the edge to the reader costs a link and
//! a release in each pass for nothing.
//!
//! Paths are known as far back as [`REACH`] steps, so an edge that a longer path implies stays.
//!
//! Steps are looked at in two passes, this one and the one before: a step depends on earlier ones of its own
//! pass and on later ones of the pass before. Their *places* count through both: step `i` has the place `i`
//! in the pass before and `steps + i` in this one.

use smallvec::SmallVec;

/// How far back paths are known, in places.
const REACH: usize = 1024;

/// The steps that each step depends on.
#[derive(Debug)]
pub(super) struct Paths {
    before: Vec<SmallVec<[usize; 4]>>,
    /// What the last places come after: a ring, in which a place is at its remainder by the length.
    earlier: Vec<Earlier>,
    /// The next place.
    next: usize,
    /// What the next place comes after by a path of several edges.
    indirect: Earlier,
}

/// The places that a place comes after: bit `i` is the place that is `i + 1` before it.
#[derive(Clone, Copy, Debug, Default)]
struct Earlier([u64; REACH / 64]);

impl Earlier {
    /// Whether a place that is so far before this one is among them.
    fn contains(&self, distance: usize) -> bool {
        self.0[(distance - 1) / 64] >> ((distance - 1) % 64) & 1 == 1
    }

    /// Adds a place that is so far before this one.
    fn add(&mut self, distance: usize) {
        self.0[(distance - 1) / 64] |= 1 << ((distance - 1) % 64);
    }

    /// Adds what a place that is so far before this one comes after.
    fn add_all(&mut self, distance: usize, its: &Self) {
        let (words, bits) = (distance / 64, distance % 64);
        for (at, word) in self.0.iter_mut().skip(words).enumerate() {
            *word |= its.0[at] << bits;
            // Shifted twice, because a shift by 64 bits is none.
            let carried = at.checked_sub(1).map_or(0, |below| its.0[below]);
            *word |= carried >> 1 >> (63 - bits);
        }
    }
}

impl Paths {
    /// The paths among steps that depend on these others.
    pub(super) fn new(before: Vec<SmallVec<[usize; 4]>>) -> Self {
        let places = (2 * before.len()).min(REACH);
        let earlier = vec![Earlier::default(); places];
        let mut paths = Self { before, earlier, next: 0, indirect: Earlier::default() };
        // The first place comes after none. The others are visited one after the other.
        (0..paths.before.len()).for_each(|_| paths.advance());
        paths
    }

    /// How far before the next place the last task is that was this step. `None` if it is too far.
    fn distance(&self, on: usize) -> Option<usize> {
        let steps = self.before.len();
        let step = self.next % steps;
        let distance = if on < step { step - on } else { step + steps - on };
        // There is no place before the pass before.
        (distance <= REACH && distance <= self.next).then_some(distance)
    }

    /// Calls `f` with the distance of each place that the next one depends on.
    fn each_distance(&self, f: impl FnMut(usize)) {
        let before = &self.before[self.next % self.before.len()];
        before.iter().filter_map(|&on| self.distance(on)).for_each(f);
    }

    /// Whether the next step comes after this dependency of it by a path of several edges.
    pub(super) fn implies(&self, on: usize) -> bool {
        self.distance(on).is_some_and(|distance| self.indirect.contains(distance))
    }

    /// Goes on to the step after the next one.
    pub(super) fn advance(&mut self) {
        let (mut earlier, at) = (self.indirect, self.next % self.earlier.len());
        self.each_distance(|distance| earlier.add(distance));
        self.earlier[at] = earlier;
        self.next += 1;
        let mut indirect = Earlier::default();
        self.each_distance(|distance| {
            let its = &self.earlier[(self.next - distance) % self.earlier.len()];
            indirect.add_all(distance, its);
        });
        self.indirect = indirect;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

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
                for &on in edges {
                    let target = if on < step { before.len() + on } else { on };
                    let expected = comes_after(&before, before.len() + step, target, 2);
                    prop_assert_eq!(paths.implies(on), expected, "step {} on {}", step, on);
                }
                paths.advance();
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 12 } else { 256 }))]

        /// In a long pass, where words end and where what is known ends.
        #[test]
        fn a_place_is_after_what_its_dependencies_are_after(
            edges in proptest::collection::vec((0..1500_usize, 1..1200_usize), 0..40),
        ) {
            const STEPS: usize = 1500;
            // Each step comes after one that is some steps before it, and some after another one.
            let mut before: Vec<SmallVec<[usize; 4]>> =
                (0..STEPS).map(|step| step.checked_sub(7).into_iter().collect()).collect();
            for (step, distance) in edges {
                let on = (step + STEPS - distance) % STEPS;
                if !before[step].contains(&on) {
                    before[step].push(on);
                }
            }
            let mut paths = Paths::new(before.clone());
            // The same, by sets. What is farther than `REACH` is not known.
            let mut after: Vec<BTreeSet<usize>> = Vec::new();
            for place in 0..2 * STEPS {
                let step = place % STEPS;
                let on = |on: usize| (place - step + on).checked_sub(if on < step { 0 } else { STEPS });
                let direct: Vec<usize> =
                    before[step].iter().filter_map(|&step| on(step)).filter(|on| place - on <= REACH).collect();
                if place >= STEPS {
                    for &edge in &before[step] {
                        let target = on(edge).filter(|target| place - target <= REACH);
                        let expected =
                            target.is_some_and(|target| direct.iter().any(|&other| after[other].contains(&target)));
                        prop_assert_eq!(paths.implies(edge), expected, "place {} on {}", place, edge);
                    }
                    paths.advance();
                }
                let mut all: BTreeSet<usize> = direct.iter().copied().collect();
                direct.iter().for_each(|&on| all.extend(&after[on]));
                all.retain(|on| place - on <= REACH);
                after.push(all);
            }
        }
    }

    #[test]
    fn an_edge_that_a_very_long_path_implies_stays() {
        for (steps, implied) in [(REACH, true), (REACH + 1, true), (REACH + 2, false)] {
            // A chain, whose last step also depends on the first one.
            let mut before: Vec<SmallVec<[usize; 4]>> =
                (0..steps).map(|step| step.checked_sub(1).into_iter().collect()).collect();
            before[steps - 1].push(0);
            let mut paths = Paths::new(before);
            (1..steps).for_each(|_| paths.advance());
            assert_eq!(paths.implies(0), implied, "{steps} steps");
        }
    }
}
