//! Task Bench: graphs of tasks of a known length, whose results are checked, on several systems.
//!
//! After E. Slaughter, W. Wu, Y. Fu, L. Brandenburg, N. Garcia, W. Kautz, E. Marx, K. S. Morris, Q. Cao, G.
//! Bosilca, S. Mirchandaney, W. Lee, S. Treichler, P. McCormick and A. Aiken: *Task Bench: A Parameterized
//! Benchmark for Evaluating Parallel Runtime Performance*, SC 2020, arXiv:1908.05790. The code is our own.
//!
//! A graph has steps and columns ([`pattern`]). A task waits for the results of some tasks of the step
//! before, checks that they are exactly those, computes for a while and leaves its own result ([`work`]). A
//! system is as good as its tasks may be short: its METG ([`mod@metg`]). The systems are a replayed sequence
//! ([`replayed`]), tasks that are submitted one by one ([`submitted`]), a team with a barrier after each step
//! ([`team`]), and programs in C++ with MPI and OpenMP ([`peer`]).

mod metg;
mod pattern;
mod peer;
mod replayed;
mod submitted;
mod team;
mod work;

pub use pattern::{Graph, Pattern};
pub use peer::Peer;
pub use replayed::Replayed;
pub use submitted::{Kind, Submitted};
pub use team::Team;

use crate::harness::{Context, Failure};

/// The results of at least this many steps are kept before they are overwritten, so that a column may be
/// ahead of another one.
const KEPT: usize = 8;
/// How long a run takes at least, in nanoseconds, so that its begin and its end hardly count.
const RUN_NS: f64 = 6e6;
/// The fewest and the most steps of a run.
const STEPS: (f64, f64) = (64.0, 20_000.0);
/// How many runs decide about a granularity.
const RUNS: usize = 3;

impl Graph {
    /// How many steps are kept: whole periods.
    fn kept(&self) -> usize {
        KEPT.next_multiple_of(self.period())
    }
}

/// A system that executes a graph.
pub trait System {
    /// The nanoseconds that one iteration takes while every thread of the system does nothing else.
    ///
    /// # Errors
    /// If the system fails.
    fn alone(&mut self) -> Result<f64, Failure>;

    /// The nanoseconds of a run of this many steps, whose tasks do this many iterations each.
    ///
    /// # Errors
    /// If the system fails, or if a task has got another result than that of a task that it depends on.
    fn run(&mut self, steps: usize, iterations: u64) -> Result<f64, Failure>;
}

/// The METG(50 %) of a system, in microseconds; in a smoke run the granularity of some tasks.
///
/// # Errors
/// As [`System::run`], and if the system reaches no efficiency of one half.
pub fn metg(context: &Context, graph: Graph, system: &mut dyn System) -> Result<Vec<f64>, Failure> {
    let granularity = |system: &mut dyn System, steps: usize, iterations: u64| {
        system.run(steps, iterations).map(|ns| ns * context.threads as f64 / graph.tasks(steps) as f64)
    };
    if context.smoke {
        return Ok(vec![granularity(system, 2 * graph.kept(), 64)? / 1e3]);
    }
    // Of the size before, which was twice as large.
    let mut expected: Option<f64> = None;
    let unit_ns = system.alone()?;
    let metg = metg::search(unit_ns, |iterations| -> Result<f64, Failure> {
        let task_ns = expected.unwrap_or(iterations as f64 * unit_ns);
        let steps = RUN_NS * context.threads as f64 / (task_ns * graph.width as f64);
        let steps = (steps.clamp(STEPS.0, STEPS.1) as usize).next_multiple_of(graph.kept());
        let mut figures =
            (0..RUNS).map(|_| granularity(system, steps, iterations)).collect::<Result<Vec<_>, _>>()?;
        figures.sort_by(f64::total_cmp);
        let median = figures[RUNS / 2];
        expected = Some(median);
        Ok(median)
    })?;
    Ok(vec![metg / 1e3])
}
