//! A sequence that is recorded once and replayed: a kernel for each step of some periods, with a chunk for
//! each column.

use std::time::Instant;

use anabranch::{Runtime, Sequence, grid::Chunk, prelude::*};
use anabranch_par::ThreadPool;

use super::{
    Graph, System,
    work::{self, Run},
};
use crate::harness::Failure;

/// A result on a cache line of its own.
pub type Line = [u64; 8];

/// A result as it is kept.
pub fn line(result: u64) -> Line {
    [result; 8]
}

/// Rows of results, for the steps that are kept.
///
/// # Errors
/// If the runtime has no memory.
pub fn rows(runtime: &Runtime, graph: Graph) -> Result<Vec<Buffer<Line, 1>>, Error> {
    (0..graph.kept()).map(|_| runtime.buffer_from(&vec![line(0); graph.width])).collect()
}

/// Checks what a run of this many steps has left in these rows.
///
/// # Errors
/// If a result is another one.
pub fn check(runtime: &Runtime, run: &Run, rows: &[Buffer<Line, 1>], steps: usize) -> Result<(), Failure> {
    let mut left = Vec::new();
    for row in rows {
        left.push(runtime.fence(row)?.wait()?.as_slice().to_vec());
    }
    run.check(steps, rows.len(), |row, column| left[row][column][0])
}

/// The columns as a region.
pub fn region(columns: impl IntoIterator<Item = usize>) -> Region<1> {
    Region::from_boxes(columns.into_iter().map(|column| GridBox::new(column, column + 1)))
}

/// A replayed sequence.
pub struct Replayed {
    runtime: Runtime,
    pool: ThreadPool,
    rows: Vec<Buffer<Line, 1>>,
    sequence: Sequence,
    run: Run,
}

impl Replayed {
    /// Records the graph for this number of threads.
    ///
    /// The first steps of a tree, which have fewer columns, are recorded as the others are: the tasks that
    /// they do not have do nothing.
    ///
    /// # Errors
    /// If the runtime cannot be built, or refuses a task.
    pub fn new(graph: Graph, threads: usize) -> Result<Self, Failure> {
        let runtime = Runtime::builder().threads(threads).build()?;
        let (rows, run) = (rows(&runtime, graph)?, Run::new(graph));
        let sequence = runtime.record("graph", |body| {
            (0..rows.len()).try_for_each(|phase| {
                let kept = rows.len();
                let (from, to) = (&rows[(phase + kept - 1) % kept], &rows[phase]);
                let needed: Vec<_> =
                    (0..graph.width).map(|column| graph.dependencies(phase, column)).collect();
                let (run, columns) = (run.clone(), needed.clone());
                let read = mapper(move |chunk: &Chunk<1>, _| {
                    region(chunk.range.points().flat_map(|Point([column])| needed[column].iter().copied()))
                });
                let task = body.task("step").over([graph.width]).chunks(graph.width);
                task.read(from, read).write(to, one_to_one()).kernel(move |tile, (from, to)| {
                    let step = tile.replay() as usize * kept + phase;
                    for [column] in tile.points() {
                        if column < graph.width_at(step) {
                            let result = run
                                .task(step, column, &columns[column], |from_column| from[[from_column]][0]);
                            to.set([column], line(result));
                        } else {
                            to.set([column], line(0));
                        }
                    }
                })
            })
        })?;
        Ok(Self { runtime, pool: ThreadPool::new(threads)?, rows, sequence, run })
    }
}

impl System for Replayed {
    fn alone(&mut self) -> Result<f64, Failure> {
        work::alone(&self.pool)
    }

    fn run(&mut self, steps: usize, iterations: u64) -> Result<f64, Failure> {
        let kept = self.rows.len();
        if !steps.is_multiple_of(kept) {
            return Err(format!("{steps} steps are not a multiple of the {kept} that are recorded").into());
        }
        self.run.begin(iterations);
        let begin = Instant::now();
        self.sequence.replay((steps / kept) as u64)?.wait()?;
        let ns = begin.elapsed().as_secs_f64() * 1e9;
        check(&self.runtime, &self.run, &self.rows, steps)?;
        Ok(ns)
    }
}
