//! The search itself: a maximum independent set of a graph with at most 64 vertices, or a large one.
//!
//! Vertices are numbered by age, and the oldest is 0: among sets of one size, older vertices win. A set of
//! vertices is a word, and so is a row of the adjacency matrix.

/// The most vertices that are searched at once.
pub(super) const BLOCK: usize = u64::BITS as usize;

/// The largest conflict-free set that the search finds before it has rejected `candidates` others in a
/// connected component.
///
/// `rows[v]` are the vertices in conflict with `v`. No further vertex can be added to the set, and none of
/// its vertices can be exchanged for a single older one.
pub(super) fn largest(rows: &[u64], candidates: usize) -> u64 {
    let mut rest = if rows.len() == BLOCK { u64::MAX } else { (1 << rows.len()) - 1 };
    let mut set = 0;
    while rest != 0 {
        let vertex = rest & rest.wrapping_neg();
        let component = if rows[first(rest)] == 0 { vertex } else { connected(rows, vertex) };
        rest &= !component;
        if component == vertex {
            set |= vertex;
        } else {
            let mut search = Search { rows, best: 0, size: 0, left: candidates };
            search.visit(component, 0);
            set |= older(rows, search.best, component & !search.best);
        }
    }
    set
}

/// The smallest vertex of a set that is not empty.
fn first(set: u64) -> usize {
    set.trailing_zeros() as usize
}

/// Calls `f` with the vertices of a set, ascending.
fn each(mut set: u64, mut f: impl FnMut(usize)) {
    while set != 0 {
        f(first(set));
        set &= set - 1;
    }
}

/// All vertices that can be reached from `from`.
fn connected(rows: &[u64], from: u64) -> u64 {
    let (mut seen, mut frontier) = (from, from);
    while frontier != 0 {
        let mut next = 0;
        each(frontier, |v| next |= rows[v]);
        frontier = next & !seen;
        seen |= next;
    }
    seen
}

/// Exchanges vertices of `set` for older ones out of `others`, one for one, until that is no longer possible.
/// Adds vertices that such an exchange makes free of conflicts.
fn older(rows: &[u64], mut set: u64, mut others: u64) -> u64 {
    loop {
        let mut changed = false;
        each(others, |v| {
            let conflicts = rows[v] & set;
            // No conflict, or exactly one, with a younger vertex.
            if conflicts & conflicts.wrapping_sub(1) == 0 && (conflicts == 0 || first(conflicts) > v) {
                set ^= conflicts | 1 << v;
                others ^= conflicts | 1 << v;
                changed = true;
            }
        });
        if !changed {
            return set;
        }
    }
}

/// Backtracking with a bound: the first descent takes a vertex of the fewest conflicts again and again.
struct Search<'a> {
    rows: &'a [u64],
    best: u64,
    size: u32,
    /// The number of candidates that may still be rejected.
    left: usize,
}

impl Search<'_> {
    /// Looks for sets that contain `chosen` and otherwise only vertices of `free`, which are not in conflict
    /// with it.
    fn visit(&mut self, mut free: u64, mut chosen: u64) {
        loop {
            let vertex = self.reduce(&mut free, &mut chosen);
            let size = chosen.count_ones();
            if free == 0 && size > self.size {
                (self.best, self.size) = (chosen, size);
                return;
            }
            // The first descent has no set to compare with; afterwards a candidate must be able to be larger.
            if free == 0
                || self.size > 0 && size + self.bound(free, self.size.saturating_sub(size)) <= self.size
            {
                self.left = self.left.saturating_sub(1);
                return;
            }
            self.visit(free & !(self.rows[vertex] | 1 << vertex), chosen | 1 << vertex);
            if self.left == 0 {
                return;
            }
            free &= !(1 << vertex);
        }
    }

    /// Chooses every vertex with at most one conflict, which some largest set contains. Returns a vertex with
    /// the fewest conflicts among the rest (any vertex if there is no rest).
    fn reduce(&self, free: &mut u64, chosen: &mut u64) -> usize {
        loop {
            let (mut vertex, mut fewest, before) = (0, u32::MAX, *free);
            let mut rest = *free;
            while rest != 0 {
                let v = first(rest);
                rest &= rest - 1;
                let conflicts = self.rows[v] & *free;
                if conflicts & conflicts.wrapping_sub(1) == 0 {
                    *chosen |= 1 << v;
                    *free &= !(conflicts | 1 << v);
                    rest &= *free;
                } else if conflicts.count_ones() < fewest {
                    (vertex, fewest) = (v, conflicts.count_ones());
                }
            }
            if *free == before {
                return vertex;
            }
        }
    }

    /// An upper bound on the number of vertices of `free` in a conflict-free set: one of each clique of a
    /// cover. Counting stops above `enough`.
    fn bound(&self, mut free: u64, enough: u32) -> u32 {
        let mut cliques = 0;
        while free != 0 && cliques <= enough {
            cliques += 1;
            let mut common = free;
            while common != 0 {
                let v = first(common);
                free &= !(1 << v);
                common &= self.rows[v];
            }
        }
        cliques
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The size of a largest set, by trying all sets.
    fn optimum(rows: &[u64], free: u64) -> u32 {
        if free == 0 {
            return 0;
        }
        let v = first(free);
        let without = free & (free - 1);
        optimum(rows, without).max(1 + optimum(rows, without & !rows[v]))
    }

    fn graph(n: usize, edges: &[(usize, usize)]) -> Vec<u64> {
        let mut rows = vec![0; n];
        for &(a, b) in edges.iter().filter(|(a, b)| a % n != b % n) {
            rows[a % n] |= 1 << (b % n);
            rows[b % n] |= 1 << (a % n);
        }
        rows
    }

    #[test]
    fn the_oldest_of_equals_is_taken() {
        assert_eq!(largest(&graph(5, &[(0, 1), (0, 2), (1, 2), (3, 4)]), 100), 0b01001);
        // A cycle of four: both pairs are as large.
        assert_eq!(largest(&graph(4, &[(0, 1), (1, 2), (2, 3), (3, 0)]), 100), 0b0101);
        assert_eq!(largest(&[0; 64], 100), u64::MAX);
        assert_eq!(largest(&[], 100), 0);
    }

    /// The largest set that the search finds in a connected graph of 48 vertices, and the number of rejected
    /// candidates.
    fn searched(seed: u64, cap: usize) -> (u32, usize) {
        let mut state = seed;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % n) as usize
        };
        let ring = (0..48).map(|v| (v, (v + 1) % 48));
        let edges: Vec<_> = ring.chain((0..150).map(|_| (below(48), below(48)))).collect();
        let rows = graph(48, &edges);
        let mut search = Search { rows: &rows, best: 0, size: 0, left: cap };
        search.visit((1 << 48) - 1, 0);
        (search.size, cap - search.left)
    }

    #[test]
    fn the_search_ends_at_the_cap() {
        let mut smaller = 0;
        for seed in 0..20 {
            let (largest, needed) = searched(seed, usize::MAX);
            assert!(needed > 20, "graph {seed} is too easy: {needed} candidates were rejected");
            let (size, rejected) = searched(seed, 1);
            assert_eq!(rejected, 1, "graph {seed}");
            smaller += u32::from(size < largest);
            let (size, rejected) = searched(seed, 20);
            assert_eq!(rejected, 20, "graph {seed}");
            assert!(size <= largest);
        }
        // A search that goes on after its cap finds a largest set of every graph.
        assert!(smaller > 0, "the first rejected candidate ends no search");
    }

    proptest! {
        #[test]
        fn no_set_can_be_added_to_or_made_older(
            n in 1..=64usize,
            edges in proptest::collection::vec((0..64usize, 0..64usize), 0..600),
            cap in prop::sample::select(vec![1, 2, 5, 100]),
        ) {
            let rows = graph(n, &edges);
            let set = largest(&rows, cap);
            each(set, |v| assert_eq!(rows[v] & set, 0, "two in conflict"));
            for v in (0..n).filter(|v| set >> v & 1 == 0) {
                let conflicts = rows[v] & set;
                prop_assert!(conflicts != 0, "one more would fit");
                prop_assert!(conflicts.count_ones() > 1 || first(conflicts) < v, "an older one would fit as well");
            }
        }

        #[test]
        fn without_a_cap_the_set_is_a_largest_one(
            n in 1..16usize,
            edges in proptest::collection::vec((0..16usize, 0..16usize), 0..60),
        ) {
            let rows = graph(n, &edges);
            prop_assert_eq!(largest(&rows, usize::MAX).count_ones(), optimum(&rows, (1 << n) - 1));
        }
    }
}
