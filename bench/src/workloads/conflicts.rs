//! Graphs of tasks in conflict, and the time that the scheduler takes for them.
//!
//! The tasks have no dependencies; conflicts are sampled uniformly. A *pass* is the call that makes all tasks
//! eligible at once while none runs: it looks up the tasks, searches for a conflict-free set, starts that set
//! and queues the rest. The insertion of tasks and conflicts is not part of it.

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use anabranch_graph::{ConflictScheduler, Contender, Effect, ObjectId, Order, TaskId};

// The exact size of the largest set, by branch and bound; the scheduler's own tests use it too.
#[path = "../../../graph/tests/optimum/mod.rs"]
mod optimum;

/// Conflicts between tasks: for each task, its partners among the earlier ones.
pub struct Conflicts(Vec<Vec<usize>>);

impl Conflicts {
    /// Samples `conflicts` different pairs of `tasks` tasks.
    pub fn uniform(tasks: usize, conflicts: usize, seed: u64) -> Self {
        let mut state = seed;
        let mut below = |n: usize| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let x = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((x ^ x >> 31) % n as u64) as usize
        };
        let mut graph = vec![Vec::new(); tasks];
        let mut left = conflicts;
        while left > 0 {
            let (a, b) = (below(tasks), below(tasks));
            if a < b && !graph[b].contains(&a) {
                graph[b].push(a);
                left -= 1;
            }
        }
        Self(graph)
    }

    /// Every pair of `tasks` tasks.
    pub fn complete(tasks: usize) -> Self {
        Self((0..tasks).map(|n| (0..n).collect()).collect())
    }

    fn insert(&self, scheduler: &mut ConflictScheduler) -> Vec<Contender> {
        let mut tasks = Vec::with_capacity(self.0.len());
        for (task, partners) in self.0.iter().enumerate() {
            let partners: Vec<Contender> = partners.iter().map(|&partner| tasks[partner]).collect();
            tasks.push(scheduler.insert_with(TaskId(task as u64), 0, &[], &partners));
        }
        tasks
    }

    /// Runs a pass. Returns the size of the set that it started and its duration.
    pub fn pass(&self, scheduler: &mut ConflictScheduler) -> (usize, Duration) {
        let (tasks, mut start) = (self.insert(scheduler), Vec::with_capacity(self.0.len()));
        let begin = Instant::now();
        scheduler.update(&[], &tasks, &mut start);
        let (size, time) = (start.len(), begin.elapsed());
        // Finish all tasks, so that the scheduler is empty again.
        while let Some(task) = start.pop() {
            scheduler.finished(task, &mut start);
        }
        (size, time)
    }

    /// The size of a largest conflict-free set; `None` for more than 64 tasks, where the search takes too
    /// long.
    fn largest(&self) -> Option<usize> {
        let mut rows = vec![0; self.0.len()];
        for (task, partner) in self.0.iter().enumerate().flat_map(|(t, ps)| ps.iter().map(move |p| (t, p))) {
            rows[task] |= 1 << partner;
            rows[*partner] |= 1 << task;
        }
        (self.0.len() <= 64).then(|| optimum::optimum(&rows))
    }
}

/// Inserts mutually exclusive tasks by `insert`, makes them eligible one by one, and finishes each as soon as
/// it starts.
pub fn one_by_one(insert: impl FnOnce(&mut ConflictScheduler) -> Vec<Contender>) {
    let mut scheduler = ConflictScheduler::new();
    let tasks = insert(&mut scheduler);
    let mut start = Vec::with_capacity(tasks.len());
    tasks.iter().for_each(|&task| scheduler.eligible(task, &mut start));
    let mut next = 0;
    while let Some(&task) = start.get(next) {
        assert_eq!(start.len(), next + 1, "one task runs at a time");
        scheduler.finished(task, &mut start);
        next += 1;
    }
    assert_eq!(next, tasks.len(), "every task has started");
}

/// Runs tasks that each have an exclusive effect on the same object.
pub fn by_object(tasks: usize) {
    let effect = Effect { object: ObjectId(1), order: Order::Exclusive };
    one_by_one(|scheduler| (0..tasks as u64).map(|n| scheduler.insert(TaskId(n), 0, &[effect])).collect());
}

/// Runs tasks whose conflicts are declared pair by pair.
pub fn by_pairs(conflicts: &Conflicts) {
    one_by_one(|scheduler| conflicts.insert(scheduler));
}

const CAPS: [usize; 5] = [1, 10, 100, 1_000, 10_000];

/// Tabulates the size of the sets and the time of a pass against the cap on rejected candidates.
pub fn cap_table(smoke: bool) -> String {
    let (graphs, repetitions) = if smoke { (1, 1) } else { (10, 7) };
    let mut text = format!(
        "Conflict-free sets: means over {graphs} graphs; µs of a pass, the median of {repetitions}\n\n"
    );
    let _ = write!(text, "{:>6} {:>10} {:>8}", "tasks", "conflicts", "optimum");
    for cap in CAPS {
        let _ = write!(text, " | {:>6} size   mean  worst", format!("≤{cap}"));
    }
    text.push('\n');
    let sizes = [
        (20, 60),
        (40, 80),
        (40, 200),
        (60, 400),
        (60, 1_200),
        (100, 500),
        (300, 3_000),
        (900, 10_000),
        (900, 40_000),
    ];
    for (tasks, conflicts) in sizes {
        let graphs: Vec<_> = (0..graphs).map(|seed| Conflicts::uniform(tasks, conflicts, seed)).collect();
        let optima: Option<Vec<usize>> = graphs.iter().map(Conflicts::largest).collect();
        let optimum =
            optima.map_or("-".into(), |sizes| format!("{:.2}", mean(sizes.iter().map(|&s| s as f64))));
        let _ = write!(text, "{tasks:>6} {conflicts:>10} {optimum:>8}");
        for cap in CAPS {
            let passes: Vec<_> = graphs.iter().map(|graph| median_pass(graph, cap, repetitions)).collect();
            let size = mean(passes.iter().map(|(size, _)| *size as f64));
            let micros = || passes.iter().map(|(_, time)| time.as_secs_f64() * 1e6);
            let worst = micros().fold(0.0, f64::max);
            let _ = write!(text, " | {size:>11.2} {:>6.1} {worst:>6.1}", mean(micros()));
        }
        text.push('\n');
    }
    text
}

/// The size of the set, which is the same in every pass, and the median of the times.
fn median_pass(graph: &Conflicts, cap: usize, repetitions: usize) -> (usize, Duration) {
    let mut scheduler = ConflictScheduler::with_candidates(cap);
    let mut passes: Vec<_> = (0..repetitions).map(|_| graph.pass(&mut scheduler)).collect();
    passes.sort_by_key(|(_, time)| *time);
    passes[repetitions / 2]
}

fn mean(figures: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = figures.len() as f64;
    figures.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_starts_a_conflict_free_set_of_nearly_the_largest_size() {
        let _deadline = testing::deadline();
        let graph = Conflicts::uniform(40, 80, 1);
        assert_eq!(graph.0.iter().map(Vec::len).sum::<usize>(), 80);
        let mut scheduler = ConflictScheduler::new();
        let (size, largest) = (graph.pass(&mut scheduler).0, graph.largest().unwrap());
        assert!(size <= largest && size + 2 >= largest, "{size} of {largest}");
        assert!(scheduler.is_empty());
        assert_eq!(Conflicts::complete(9).pass(&mut scheduler).0, 1);
        assert_eq!(Conflicts::complete(9).largest(), Some(1));
    }
}
