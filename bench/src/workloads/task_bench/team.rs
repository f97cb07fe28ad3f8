//! A team of threads with a barrier after each step: what remains without a runtime.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Instant,
};

use anabranch_par::ThreadPool;

use super::{
    Graph, System,
    work::{self, Run},
};
use crate::harness::Failure;

/// A result on a cache line of its own. The barriers order the accesses.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicU64);

/// A team.
pub struct Team {
    pool: ThreadPool,
    rows: Vec<Vec<Line>>,
    /// The dependencies of each task of each phase.
    columns: Vec<Vec<Vec<usize>>>,
    graph: Graph,
    run: Run,
}

impl Team {
    /// Starts this number of threads.
    ///
    /// # Errors
    /// If they cannot be started.
    pub fn new(graph: Graph, threads: usize) -> Result<Self, Failure> {
        let row = || (0..graph.width).map(|_| Line::default()).collect();
        let of_phase = |phase| (0..graph.width).map(|column| graph.dependencies(phase, column)).collect();
        Ok(Self {
            pool: ThreadPool::new(threads)?,
            rows: (0..graph.kept()).map(|_| row()).collect(),
            columns: (0..graph.kept()).map(of_phase).collect(),
            graph,
            run: Run::new(graph),
        })
    }
}

impl System for Team {
    fn alone(&mut self) -> Result<f64, Failure> {
        work::alone(&self.pool)
    }

    fn run(&mut self, steps: usize, iterations: u64) -> Result<f64, Failure> {
        let Self { pool, rows, columns, graph, run } = self;
        let kept = rows.len();
        run.begin(iterations);
        let begin = Instant::now();
        pool.team(pool.threads(), |member| {
            for step in 0..steps {
                let phase = step % kept;
                let (from, to) = (&rows[(phase + kept - 1) % kept], &rows[phase]);
                for column in member.share(graph.width_at(step)) {
                    let input = |column: usize| from[column].0.load(Relaxed);
                    to[column].0.store(run.task(step, column, &columns[phase][column], input), Relaxed);
                }
                member.barrier();
            }
        })?;
        let ns = begin.elapsed().as_secs_f64() * 1e9;
        run.check(steps, kept, |row, column| rows[row][column].0.load(Relaxed))?;
        Ok(ns)
    }
}
