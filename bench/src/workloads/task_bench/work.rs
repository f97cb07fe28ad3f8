//! What a task does: it checks what it has got, computes, and leaves a result. `peers/task_bench.hpp` does
//! the same.

use std::{
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use anabranch_par::ThreadPool;

use super::Graph;
use crate::harness::Failure;

/// How many iterations are timed alone, about a millisecond, and how often.
const ALONE: (u64, usize) = (1 << 19, 7);

/// Eight chains of multiply-adds, for this many iterations: 16 operations each. It is compiled for any x86-64
/// processor on all sides.
#[inline(never)]
pub fn compute(iterations: u64) -> f64 {
    let mut values = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8];
    for _ in 0..iterations {
        for value in &mut values {
            *value = *value * 0.999 + 0.001;
        }
    }
    values.iter().sum()
}

/// The nanoseconds of an iteration while all threads of a pool compute: the best of some samples.
///
/// # Errors
/// If the threads cannot form a team.
pub fn alone(pool: &ThreadPool) -> Result<f64, Failure> {
    let (iterations, samples) = ALONE;
    let mut best = f64::INFINITY;
    for _ in 0..samples {
        let times = pool.team(pool.threads(), |member| {
            member.barrier();
            let begin = Instant::now();
            black_box(compute(black_box(iterations)));
            begin.elapsed().as_secs_f64() * 1e9
        })?;
        best = best.min(times.iter().sum::<f64>() / times.len() as f64 / iterations as f64);
    }
    Ok(best)
}

/// A run of a graph, as its tasks see it.
#[derive(Clone, Debug)]
pub struct Run {
    graph: Graph,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// The number of the run, so that a result of an earlier run is not taken for one of this run.
    number: AtomicU64,
    iterations: AtomicU64,
}

impl Run {
    pub fn new(graph: Graph) -> Self {
        Self { graph, shared: Arc::new(Shared { number: AtomicU64::new(0), iterations: AtomicU64::new(0) }) }
    }

    /// Begins the next run. No task of the one before may be left.
    pub fn begin(&self, iterations: u64) {
        self.shared.number.fetch_add(1, Relaxed);
        self.shared.iterations.store(iterations, Relaxed);
    }

    /// The result of a task in this run.
    pub fn result(&self, step: usize, column: usize) -> u64 {
        self.shared.number.load(Relaxed) << 48 | (step as u64) << 16 | column as u64
    }

    /// Does a task. `columns` are its dependencies, and `input` gives their results.
    ///
    /// # Panics
    /// If a result is another one than that of the dependency.
    pub fn task(&self, step: usize, column: usize, columns: &[usize], input: impl Fn(usize) -> u64) -> u64 {
        if step > 0 {
            for &from in columns {
                let (expected, found) = (self.result(step - 1, from), input(from));
                assert!(
                    found == expected,
                    "task {column} of step {step} has read {found:#x} in column {from}, which is not the result {expected:#x} of the \
                     task that it depends on"
                );
            }
        }
        black_box(compute(self.shared.iterations.load(Relaxed)));
        self.result(step, column)
    }

    /// Checks the results that a run of this many steps leaves. `kept` steps are kept, and `left` gives what
    /// is in a column of one of them.
    ///
    /// # Errors
    /// If a result is another one.
    pub fn check(
        &self,
        steps: usize,
        kept: usize,
        left: impl Fn(usize, usize) -> u64,
    ) -> Result<(), Failure> {
        for step in steps.saturating_sub(kept)..steps {
            for column in 0..self.graph.width_at(step) {
                let (expected, found) = (self.result(step, column), left(step % kept, column));
                if found != expected {
                    return Err(format!(
                        "task {column} of step {step} has left {found:#x}, which is not its result {expected:#x}"
                    )
                    .into());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::task_bench::Pattern;

    fn run() -> Run {
        let run = Run::new(Graph { pattern: Pattern::Stencil, width: 4 });
        run.begin(1);
        run
    }

    #[test]
    fn a_task_accepts_exactly_the_results_of_its_dependencies() {
        let run = run();
        assert_eq!(run.task(7, 2, &[1, 2, 3], |from| run.result(6, from)), run.result(7, 2));
        // In step 0 there is nothing to read.
        run.task(0, 2, &[1, 2, 3], |_| 0);
        let stale = run.result(6, 1);
        run.begin(1);
        let wrong: [&(dyn Fn(usize) -> u64 + std::panic::RefUnwindSafe); 4] =
            [&|_| 0, &|_| stale, &|from| run.result(5, from), &|from| run.result(6, from + 1)];
        for input in wrong {
            let run = &run;
            let task = std::panic::AssertUnwindSafe(|| run.task(7, 2, &[1], input));
            let panic = std::panic::catch_unwind(task).unwrap_err();
            let message = panic.downcast::<String>().unwrap();
            assert!(message.starts_with("task 2 of step 7 has read 0x"), "{message}");
        }
    }

    #[test]
    fn a_result_that_is_missing_at_the_end_is_found() {
        let run = run();
        let left = |row: usize, column: usize| run.result(8 + row % 8, column);
        // Rows 0 and 1 have steps 8 and 9, the others steps 2 to 7.
        let right = |row: usize, column: usize| run.result(if row < 2 { 8 + row } else { row }, column);
        assert!(run.check(10, 8, right).is_ok());
        let error = run.check(10, 8, left).unwrap_err().to_string();
        assert!(error.starts_with("task 0 of step 2 has left"), "{error}");
    }
}
