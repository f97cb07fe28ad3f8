//! Tasks that are submitted one by one, in each step anew.

use std::time::Instant;

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
    /// What each task of each phase reads.
    regions: Vec<Vec<Region<1>>>,
    columns: Vec<Vec<Vec<usize>>>,
}

impl Submitted {
    /// Starts a runtime with this number of threads.
    ///
    /// # Errors
    /// If the runtime cannot be built.
    pub fn new(graph: Graph, threads: usize, kind: Kind) -> Result<Self, Failure> {
        let runtime = Runtime::builder().threads(threads).build()?;
        let rows = rows(&runtime, graph)?;
        let of_phase =
            |phase| (0..graph.width).map(|column| graph.dependencies(phase, column)).collect::<Vec<_>>();
        let columns: Vec<_> = (0..rows.len()).map(of_phase).collect();
        let regions_of =
            |columns: &Vec<Vec<usize>>| columns.iter().map(|needed| region(needed.iter().copied())).collect();
        let regions = columns.iter().map(regions_of).collect();
        Ok(Self {
            runtime,
            pool: ThreadPool::new(threads)?,
            rows,
            graph,
            kind,
            run: Run::new(graph),
            regions,
            columns,
        })
    }

    fn submit(&self, step: usize) -> Result<(), Error> {
        let kept = self.rows.len();
        let phase = step % kept;
        let (from, to) = (&self.rows[(phase + kept - 1) % kept], &self.rows[phase]);
        let width = self.graph.width_at(step);
        match self.kind {
            Kind::HostTasks => (0..width).try_for_each(|column| {
                let (run, columns) = (self.run.clone(), self.columns[phase][column].clone());
                let task =
                    self.runtime.task("task").once().write(to, fixed(GridBox::new(column, column + 1)));
                if columns.is_empty() {
                    task.host(move |(to,)| to.set([column], line(run.task(step, column, &[], |_| 0))))?;
                    return Ok(());
                }
                task.read(from, fixed(self.regions[phase][column].clone())).host(move |(to, from)| {
                    to.set([column], line(run.task(step, column, &columns, |column| from[[column]][0])));
                })?;
                Ok(())
            }),
            Kind::Batches => {
                let (run, columns) = (self.run.clone(), self.columns[phase].clone());
                let task = self.runtime.tasks("task").each([width]);
                let task = task.read(from, self.needed(phase)).write(to, one_to_one());
                task.host(move |[column], (from, to)| {
                    let get = |column| from[[column]][0];
                    to.set([column], line(run.task(step, column, &columns[column], get)));
                })?;
                Ok(())
            }
            Kind::Steps => {
                let (run, columns) = (self.run.clone(), self.columns[phase].clone());
                let read = self.needed(phase);
                let task = self.runtime.task("step").over([width]).chunks(width);
                task.read(from, read).write(to, one_to_one()).kernel(move |tile, (from, to)| {
                    for [column] in tile.points() {
                        to.set(
                            [column],
                            line(run.task(step, column, &columns[column], |column| from[[column]][0])),
                        );
                    }
                })?;
                Ok(())
            }
        }
    }

    /// What the tasks of a phase read.
    fn needed(&self, phase: usize) -> impl RangeMapper<1, 1> + use<> {
        let regions = self.regions[phase].clone();
        mapper(move |chunk: &Chunk<1>, _| match chunk.range.len() {
            1 => regions[chunk.range.min()[0]].clone(),
            _ => chunk.range.points().map(|Point([column])| regions[column].clone()).collect::<Region<1>>(),
        })
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
