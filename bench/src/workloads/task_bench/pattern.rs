//! Which tasks of a step need which results of the step before.

use std::fmt::Write as _;

/// How many columns a task of [`Pattern::Nearest`] and [`Pattern::RandomNearest`] looks at, and how many it
/// needs with [`Pattern::Spread`].
const RADIX: usize = 5;
/// After how many steps [`Pattern::Spread`] and [`Pattern::RandomNearest`] begin again.
const PERIOD: usize = 3;

/// The dependencies of a graph, by the names and definitions of Task Bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// None.
    Trivial,
    /// The same column.
    NoComm,
    /// The same column and its neighbours.
    Stencil,
    /// The same, on a ring.
    Periodic,
    /// The same column, and those at a distance of 1, 2, 4 and so on, in turns.
    Fft,
    /// The column of half the number. There is one column in step 0, and twice as many in each step, up to
    /// the width.
    Tree,
    /// The five columns around it.
    Nearest,
    /// Columns at even distances over the whole width, which move from step to step.
    Spread,
    /// The same column, and each of the four around it with a probability of one half.
    RandomNearest,
}

impl Pattern {
    /// All patterns, in the order of the report.
    pub const ALL: [Self; 9] = [
        Self::Trivial,
        Self::NoComm,
        Self::Stencil,
        Self::Periodic,
        Self::Fft,
        Self::Tree,
        Self::Nearest,
        Self::Spread,
        Self::RandomNearest,
    ];

    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trivial => "trivial",
            Self::NoComm => "no-comm",
            Self::Stencil => "stencil",
            Self::Periodic => "periodic",
            Self::Fft => "fft",
            Self::Tree => "tree",
            Self::Nearest => "nearest",
            Self::Spread => "spread",
            Self::RandomNearest => "random-nearest",
        }
    }
}

/// A pattern with a number of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graph {
    /// What the tasks of a step need.
    pub pattern: Pattern,
    /// The number of columns. A step has a task in each, except in the first steps of a tree.
    pub width: usize,
}

impl Graph {
    /// After how many steps the dependencies begin again.
    pub fn period(&self) -> usize {
        match self.pattern {
            Pattern::Fft => (self.width.next_power_of_two().ilog2() as usize).max(1),
            Pattern::Spread | Pattern::RandomNearest => PERIOD,
            _ => 1,
        }
    }

    /// The number of tasks of a step. They have the first columns.
    pub fn width_at(&self, step: usize) -> usize {
        match self.pattern {
            Pattern::Tree if step < self.width.ilog2() as usize + 1 => self.width.min(1 << step),
            _ => self.width,
        }
    }

    /// The number of tasks of the first steps.
    pub fn tasks(&self, steps: usize) -> usize {
        (0..steps).map(|step| self.width_at(step)).sum()
    }

    /// The columns of the step before that task `(step, column)` needs, ascending. Step 0 needs nothing,
    /// whatever this returns.
    pub fn dependencies(&self, step: usize, column: usize) -> Vec<usize> {
        let width = self.width;
        let around = |radius: usize| column.saturating_sub(radius)..=(column + radius).min(width - 1);
        let mut columns: Vec<usize> = match self.pattern {
            Pattern::Trivial => Vec::new(),
            Pattern::NoComm => vec![column],
            Pattern::Stencil => around(1).collect(),
            Pattern::Periodic => vec![(column + width - 1) % width, column, (column + 1) % width],
            Pattern::Fft => {
                let period = self.period();
                let distance = 1 << ((step + period - 1) % period);
                let [below, above] = [column.checked_sub(distance), column.checked_add(distance)];
                let inside = |other: &usize| *other < width;
                [below, Some(column), above].into_iter().flatten().filter(inside).collect()
            }
            Pattern::Tree => vec![column / 2],
            Pattern::Nearest => around(RADIX / 2).collect(),
            Pattern::Spread => {
                let moved = |part: usize| if part > 0 { step % PERIOD } else { 0 };
                (0..RADIX).map(|part| (column + part * width / RADIX + moved(part)) % width).collect()
            }
            Pattern::RandomNearest => around(RADIX / 2)
                .filter(|&other| other == column || coin(step % PERIOD, other, column))
                .collect(),
        };
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The columns of the next step that need task `(step, column)`, ascending: the inverse of
    /// [`dependencies`](Self::dependencies).
    #[cfg(test)]
    fn dependents(&self, step: usize, column: usize) -> Vec<usize> {
        let needs = |other: &usize| self.dependencies(step + 1, *other).contains(&column);
        (0..self.width_at(step + 1)).filter(needs).collect()
    }

    /// The graph for programs in C++ (`peers/task_bench.hpp`): the width, the width of step 0, the period,
    /// and for each column of each step of one period the number of its dependencies, and these.
    pub fn text(&self) -> String {
        let mut text = format!("{} {} {}", self.width, self.width_at(0), self.period());
        for step in 0..self.period() {
            for column in 0..self.width {
                let columns = self.dependencies(step, column);
                let _ = write!(text, " {}", columns.len());
                for column in columns {
                    let _ = write!(text, " {column}");
                }
            }
        }
        text
    }
}

/// One of two, always the same for the same numbers: a bit of SplitMix64.
fn coin(phase: usize, from: usize, to: usize) -> bool {
    let mut bits =
        (((phase as u64) << 32 | (from as u64) << 16 | to as u64) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits ^ (bits >> 31)) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(pattern: Pattern, width: usize) -> Graph {
        Graph { pattern, width }
    }

    #[test]
    fn the_dependencies_are_those_of_task_bench() {
        let of = |pattern, width, step, column| graph(pattern, width).dependencies(step, column);
        assert!(of(Pattern::Trivial, 4, 1, 2).is_empty());
        assert_eq!(of(Pattern::NoComm, 4, 1, 2), [2]);
        assert_eq!(
            [0, 2, 3].map(|column| of(Pattern::Stencil, 4, 9, column)),
            [vec![0, 1], vec![1, 2, 3], vec![2, 3]]
        );
        assert_eq!([0, 3].map(|column| of(Pattern::Periodic, 4, 9, column)), [vec![0, 1, 3], vec![0, 2, 3]]);
        let fft = [1, 2, 3, 4, 5].map(|step| of(Pattern::Fft, 16, step, 9));
        assert_eq!(fft, [vec![8, 9, 10], vec![7, 9, 11], vec![5, 9, 13], vec![1, 9], vec![8, 9, 10]]);
        assert_eq!([0, 1, 14, 15].map(|column| of(Pattern::Tree, 16, 9, column)), [[0], [0], [7], [7]]);
        assert_eq!(
            [0, 1, 7].map(|column| of(Pattern::Nearest, 16, 9, column)),
            [vec![0, 1, 2], vec![0, 1, 2, 3], vec![5, 6, 7, 8, 9]]
        );
        let spread = [3, 4, 5].map(|step| of(Pattern::Spread, 16, step, 10));
        assert_eq!(spread, [[0, 3, 6, 10, 13], [1, 4, 7, 10, 14], [2, 5, 8, 10, 15]]);
    }

    #[test]
    fn a_random_graph_has_its_own_column_and_about_half_of_the_others() {
        let graph = graph(Pattern::RandomNearest, 1000);
        let mut others = 0;
        for step in 0..PERIOD {
            for column in 2..998 {
                let columns = graph.dependencies(step, column);
                assert!(columns.contains(&column) && columns.iter().all(|other| other.abs_diff(column) <= 2));
                others += columns.len() - 1;
            }
        }
        let share = others as f64 / (4 * 996 * PERIOD) as f64;
        assert!((0.45..0.55).contains(&share), "{share}");
        assert_ne!(
            graph.dependencies(0, 500),
            graph.dependencies(2, 500),
            "choose another column for this test"
        );
    }

    #[test]
    fn every_graph_is_periodic_and_needs_only_tasks_that_exist() {
        for pattern in Pattern::ALL {
            for width in [1, 2, 4, 5, 16] {
                let graph = graph(pattern, width);
                for step in 1..20 {
                    for column in 0..graph.width_at(step) {
                        let columns = graph.dependencies(step, column);
                        assert!(columns.is_sorted() && columns.len() <= RADIX, "{graph:?}");
                        assert!(
                            columns.iter().all(|&other| other < graph.width_at(step - 1)),
                            "{graph:?}, {step}"
                        );
                        assert_eq!(columns, graph.dependencies(step + graph.period(), column), "{graph:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_a_task_needs_has_it_among_its_dependents_and_nothing_else_has() {
        for pattern in Pattern::ALL {
            let graph = graph(pattern, 16);
            for step in 0..12 {
                let mut edges = 0;
                for column in 0..graph.width_at(step) {
                    for to in graph.dependents(step, column) {
                        assert!(graph.dependencies(step + 1, to).contains(&column), "{graph:?}");
                        edges += 1;
                    }
                }
                let needed = |to| graph.dependencies(step + 1, to).len();
                assert_eq!(
                    edges,
                    (0..graph.width_at(step + 1)).map(needed).sum::<usize>(),
                    "{graph:?}, {step}"
                );
            }
        }
    }

    #[test]
    fn a_tree_grows_from_one_column_to_its_width() {
        let tree = graph(Pattern::Tree, 16);
        assert_eq!([0, 1, 2, 3, 4, 5, 99].map(|step| tree.width_at(step)), [1, 2, 4, 8, 16, 16, 16]);
        assert_eq!((tree.tasks(5), tree.tasks(0)), (31, 0));
        assert_eq!([0, 1, 3].map(|step| graph(Pattern::Tree, 5).width_at(step)), [1, 2, 5]);
        assert_eq!(graph(Pattern::Fft, 16).tasks(10), 160);
    }

    #[test]
    fn programs_in_c_get_the_graph_as_numbers() {
        assert_eq!(graph(Pattern::Stencil, 3).text(), "3 3 1 2 0 1 3 0 1 2 2 1 2");
        assert_eq!(graph(Pattern::Tree, 2).text(), "2 1 1 1 0 1 0");
        assert_eq!(
            graph(Pattern::Fft, 4).text(),
            "4 4 2 2 0 2 2 1 3 2 0 2 2 1 3 2 0 1 3 0 1 2 3 1 2 3 2 2 3"
        );
    }
}
