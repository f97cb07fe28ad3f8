//! Tasks that are submitted one by one, in each step anew.

use std::{sync::Arc, time::Instant};

use anabranch::{
    Runtime,
    grid::{Chunk, RangeMapper},
    prelude::*,
};
use anabranch_par::ThreadPool;

use super::{
    Graph, System,
    replayed::{Line, check, line, region, rows},
    work::{self, Run},
};
use crate::harness::Failure;

/// What is submitted in each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A host task for each task.
    HostTasks,
    /// A batch of host tasks, one for each task.
    Batches,
    /// A kernel, with a chunk for each column.
    Steps,
}

/// Submitted tasks.
pub struct Submitted {
    runtime: Runtime,
    pool: ThreadPool,
    rows: Vec<Buffer<Line, 1>>,
    graph: Graph,
    kind: Kind,
    run: Run,
    phases: Vec<Arc<Phase>>,
}

/// The steps that write the same row, as their tasks see them.
struct Phase {
    run: Run,
    /// What each task depends on.
    columns: Vec<Vec<usize>>,
    /// The same as regions, and behind them what all tasks together depend on.
    regions: Vec<Region<1>>,
}

impl Phase {
    fn new(graph: Graph, phase: usize, run: Run) -> Self {
        let columns: Vec<_> = (0..graph.width).map(|column| graph.dependencies(phase, column)).collect();
        let all = region(columns.iter().flatten().copied());
        let regions = columns.iter().map(|needed| region(needed.iter().copied())).chain([all]).collect();
        Self { run, columns, regions }
    }

    /// What the tasks read.
    fn needed(self: &Arc<Self>) -> impl RangeMapper<1, 1> + use<> {
        let phase = Arc::clone(self);
        mapper(move |chunk: &Chunk<1>, _| {
            let (range, regions) = (chunk.range, &phase.regions);
            match range.len() {
                1 => regions[range.min()[0]].clone(),
                columns if columns + 1 == regions.len() => regions[columns].clone(),
                _ => range.points().map(|Point([column])| regions[column].clone()).collect(),
            }
        })
    }

    /// Does a task with what it reads.
    fn task(&self, step: usize, column: usize, get: impl Fn(usize) -> u64) -> Line {
        line(self.run.task(step, column, &self.columns[column], get))
    }
}

impl Submitted {
    /// Starts a runtime with this number of threads.
    ///
    /// # Errors
    /// If the runtime cannot be built.
    pub fn new(graph: Graph, threads: usize, kind: Kind) -> Result<Self, Failure> {
        let runtime = Runtime::builder().threads(threads).build()?;
        let rows = rows(&runtime, graph)?;
        let run = Run::new(graph);
        let phases = (0..rows.len()).map(|phase| Arc::new(Phase::new(graph, phase, run.clone()))).collect();
        Ok(Self { runtime, pool: ThreadPool::new(threads)?, rows, graph, kind, run, phases })
    }

    fn submit(&self, step: usize) -> Result<(), Error> {
        let kept = self.rows.len();
        let at = step % kept;
        let (from, to) = (&self.rows[(at + kept - 1) % kept], &self.rows[at]);
        let phase = Arc::clone(&self.phases[at]);
        let width = self.graph.width_at(step);
        match self.kind {
            Kind::HostTasks => (0..width).try_for_each(|column| {
                let (phase, own) = (Arc::clone(&phase), GridBox::new(column, column + 1));
                let task = self.runtime.task("task").once().write(to, fixed(own));
                if phase.columns[column].is_empty() {
                    task.host(move |(to,)| to.set([column], phase.task(step, column, |_| 0)))?;
                    return Ok(());
                }
                let needed = fixed(phase.regions[column].clone());
                task.read(from, needed).host(move |(to, from)| {
                    to.set([column], phase.task(step, column, |column| from[[column]][0]));
                })?;
                Ok(())
            }),
            Kind::Batches => {
                let task = self.runtime.tasks("task").each([width]);
                task.read(from, phase.needed()).write(to, one_to_one()).host(
                    move |[column], (from, to)| {
                        to.set([column], phase.task(step, column, |column| from[[column]][0]));
                    },
                )?;
                Ok(())
            }
            Kind::Steps => {
                let task = self.runtime.task("step").over([width]).chunks(width);
                task.read(from, phase.needed()).write(to, one_to_one()).kernel(move |tile, (from, to)| {
                    for [column] in tile.points() {
                        to.set([column], phase.task(step, column, |column| from[[column]][0]));
                    }
                })?;
                Ok(())
            }
        }
    }
}

impl System for Submitted {
    fn alone(&mut self) -> Result<f64, Failure> {
        work::alone(&self.pool)
    }

    fn run(&mut self, steps: usize, iterations: u64) -> Result<f64, Failure> {
        self.run.begin(iterations);
        let begin = Instant::now();
        (0..steps).try_for_each(|step| self.submit(step))?;
        self.runtime.wait()?;
        let ns = begin.elapsed().as_secs_f64() * 1e9;
        check(&self.runtime, &self.run, &self.rows, steps)?;
        Ok(ns)
    }
}
