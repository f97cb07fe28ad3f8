//! Programs whose graphs are derived as a benchmark: the programs of Celerity's own benchmarks, with its
//! numbers of tasks.
//!
//! A [`Topology`] is a list of tasks, each with an index space and accesses by range mapper.
//! [`Topology::generate`] submits it to a new graph, as a program would. Where a task of Celerity's reads and
//! writes the same points of a buffer (chain, trees), two buffers alternate here.

use std::{hint::black_box, sync::Arc};

use anabranch::grid::{Chunk, Extent, GridBox, RangeMapper, mapper, neighborhood, one_to_one, transposed};
use anabranch_graph::{
    Access, BufferId, Horizons, Mode, Settings, Submitted, TaskGraph,
    command::{BufferAccess, CommandGraph, Launch, Mapper, NodeId, Work, erase},
};

use crate::harness::Failure;

/// A program: its buffers and tasks.
pub struct Topology {
    buffers: Vec<(Extent<3>, bool)>,
    tasks: Vec<Task>,
    /// Whether an epoch follows the tasks.
    epoch: bool,
}

struct Task {
    space: GridBox<3>,
    accesses: Vec<BufferAccess>,
    /// Makes the mapper of each access again.
    makers: Vec<Maker>,
}

/// Makes a mapper. Mappers of one maker are equal if their values are.
type Maker = Arc<dyn Fn() -> Mapper + Send + Sync>;

/// A node of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The rank of the node.
    pub rank: u16,
    /// The number of nodes.
    pub of: u16,
}

impl Node {
    /// The node in the middle, which has neighbours on both sides.
    pub fn middle(of: u16) -> Self {
        Self { rank: of / 2, of }
    }
}

impl Topology {
    fn new() -> Self {
        Self { buffers: Vec::new(), tasks: Vec::new(), epoch: false }
    }

    fn buffer<const B: usize>(&mut self, extent: [usize; B], initialised: bool) -> BufferId {
        self.buffers.push((Extent(extent).cast(), initialised));
        BufferId(self.buffers.len() as u64)
    }

    fn task<const K: usize>(
        &mut self,
        space: [usize; K],
        accesses: impl IntoIterator<Item = (BufferAccess, Maker)>,
    ) {
        let (accesses, makers) = accesses.into_iter().unzip();
        self.tasks.push(Task { space: GridBox::full(space).cast(), accesses, makers });
    }

    /// The number of tasks.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Gives each access a mapper of its own, as each submission to a runtime makes new ones.
    pub fn with_new_mappers(mut self) -> Self {
        for task in &mut self.tasks {
            for (access, make) in task.accesses.iter_mut().zip(&task.makers) {
                access.mapper = make();
            }
        }
        self
    }

    /// Ends the program with an epoch, which everything that is still in flight comes before.
    pub fn with_epoch(mut self) -> Self {
        self.epoch = true;
        self
    }

    /// Derives the task graph, with horizons, and the commands of `node` if there is one. The graph is never
    /// informed that a task has finished.
    ///
    /// # Errors
    /// If a graph refuses a task.
    pub fn generate(&self, node: Option<Node>) -> Result<(), Failure> {
        let mut graph =
            TaskGraph::with(Settings { horizons: Some(Horizons::default()), ..Settings::default() });
        let mut commands = node.map(|node| CommandGraph::new(NodeId(node.rank), node.of));
        for (number, &(extent, initialised)) in self.buffers.iter().enumerate() {
            let buffer = graph.create_buffer(extent, initialised);
            assert_eq!(buffer, BufferId(number as u64 + 1), "a new graph numbers its buffers from 1");
            if let Some(commands) = &mut commands {
                commands.create_buffer(buffer, extent, initialised);
            }
        }
        let (mut accesses, mut submitted) = (Vec::new(), Submitted::default());
        for Task { space, accesses: declared, .. } in &self.tasks {
            let whole = Chunk::whole(*space);
            accesses.clear();
            accesses.extend(declared.iter().map(|access| Access {
                buffer: access.buffer,
                region: access.mapper.map(&whole),
                mode: access.mode,
            }));
            graph.submit_into(&accesses, &[], &|_| false, &mut submitted)?;
            black_box(&submitted);
            let Some(commands) = &mut commands else { continue };
            let launch = Launch::new(submitted.id, Work::Kernel { space: *space });
            black_box(commands.launch(&Launch { accesses: declared, ..launch })?);
            if let Some(horizon) = &submitted.horizon {
                black_box(commands.launch(&Launch::new(horizon.id, Work::Horizon))?);
            }
        }
        if self.epoch {
            let epoch = graph.epoch(&[], &[], &|_| false)?;
            black_box(&epoch);
            if let Some(commands) = &mut commands {
                black_box(commands.launch(&Launch::new(epoch.id, Work::Epoch))?);
            }
        }
        Ok(())
    }
}

fn access(buffer: BufferId, mode: Mode, (mapper, maker): &(Mapper, Maker)) -> (BufferAccess, Maker) {
    (BufferAccess { buffer, mode, mapper: mapper.clone() }, Arc::clone(maker))
}

/// A mapper defined by a closure, for a buffer of this extent.
fn by<const K: usize, const B: usize>(
    extent: [usize; B],
    map: impl Fn(&Chunk<K>) -> GridBox<B> + Clone + Send + Sync + 'static,
) -> (Mapper, Maker) {
    on(extent, mapper(move |chunk: &Chunk<K>, _: Extent<B>| map(chunk)))
}

fn on<const K: usize, const B: usize>(
    extent: [usize; B],
    mapper: impl RangeMapper<K, B> + Clone + 'static,
) -> (Mapper, Maker) {
    let make: Maker = Arc::new(move || erase(mapper.clone(), Extent(extent)));
    (make(), make)
}

/// Tasks that each change their own column of one buffer.
pub fn soup() -> Topology {
    let (mut program, extent) = (Topology::new(), [64, 100]);
    let u = program.buffer(extent, true);
    for column in 0..extent[1] {
        let own = by::<1, 2>(extent, move |chunk| {
            GridBox::new([chunk.range.min()[0], column], [chunk.range.max()[0], column + 1])
        });
        program.task([extent[0]], [access(u, Mode::Update, &own)]);
    }
    program
}

/// Tasks that each read the result of the previous one transposed, so that a node needs data from all nodes.
pub fn chain() -> Topology {
    let (mut program, extent) = (Topology::new(), [256, 256]);
    let [mut from, mut to] = [true, true].map(|initialised| program.buffer(extent, initialised));
    let (columns, rows) = (on::<2, 2>(extent, transposed()), on::<2, 2>(extent, one_to_one()));
    for _ in 0..30 {
        program.task(extent, [access(from, Mode::Read, &columns), access(to, Mode::Write, &rows)]);
        std::mem::swap(&mut from, &mut to);
    }
    program
}

/// Levels of tasks; `levels` gives the number of tasks of each. A task reads all of its share of the columns,
/// and each of its chunks writes some rows of that share.
fn tree(levels: [usize; 5]) -> Topology {
    let (mut program, extent) = (Topology::new(), [64, 16]);
    let [mut from, mut to] = [true, true].map(|initialised| program.buffer(extent, initialised));
    for parts in levels {
        let width = extent[1] / parts;
        for left in (0..extent[1]).step_by(width) {
            let gather = by::<1, 2>(extent, move |_| GridBox::new([0, left], [extent[0], left + width]));
            let scatter = by::<1, 2>(extent, move |chunk| {
                GridBox::new([chunk.range.min()[0], left], [chunk.range.max()[0], left + width])
            });
            program.task([extent[0]], [access(from, Mode::Read, &gather), access(to, Mode::Write, &scatter)]);
        }
        std::mem::swap(&mut from, &mut to);
    }
    program
}

/// Levels of 1, 2, 4, 8 and 16 tasks.
pub fn expanding_tree() -> Topology {
    tree([1, 2, 4, 8, 16])
}

/// Levels of 16, 8, 4, 2 and 1 tasks.
pub fn contracting_tree() -> Topology {
    tree([16, 8, 4, 2, 1])
}

/// The wave equation on a grid of 512².
pub fn wave_sim() -> Topology {
    wave_sim_on(512)
}

/// The wave equation: a 5-point stencil on two buffers that swap. Three tasks prepare it:
/// two that fill the buffers, and a first step.
pub fn wave_sim_on(rows: usize) -> Topology {
    let (mut program, extent) = (Topology::new(), [rows, rows]);
    let [mut u, mut before] = [false, false].map(|initialised| program.buffer(extent, initialised));
    let point = on::<2, 2>(extent, one_to_one());
    let cross = on::<2, 2>(extent, neighborhood([1, 1]).along_axes());
    for buffer in [u, before] {
        program.task(extent, [access(buffer, Mode::Write, &point)]);
    }
    for step in 0..201 {
        program.task(extent, [access(before, Mode::Update, &point), access(u, Mode::Read, &cross)]);
        if step > 0 {
            std::mem::swap(&mut u, &mut before);
        }
    }
    program
}

/// Jacobi iterations: a matrix, a right-hand side, and two vectors that swap.
pub fn jacobi() -> Topology {
    let (mut program, n) = (Topology::new(), 1024);
    let (a, b) = (program.buffer([n, n], true), program.buffer([n], true));
    let [mut x, mut next] = [false, false].map(|initialised| program.buffer([n], initialised));
    program.task([n], [access(x, Mode::Write, &on::<1, 1>([n], one_to_one()))]);
    let matrix = on::<2, 2>([n, n], one_to_one());
    let of_axis = |axis: usize| {
        by::<2, 1>([n], move |chunk| GridBox::new(chunk.range.min()[axis], chunk.range.max()[axis]))
    };
    let (rows, columns) = (of_axis(0), of_axis(1));
    for _ in 0..50 {
        program.task(
            [n, n],
            [
                access(a, Mode::Read, &matrix),
                access(b, Mode::Read, &rows),
                access(x, Mode::Read, &columns),
                access(next, Mode::Write, &rows),
            ],
        );
        std::mem::swap(&mut x, &mut next);
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topology_has_as_many_tasks_as_celeritys_and_is_valid() {
        let _deadline = testing::deadline();
        let all = [soup(), chain(), expanding_tree(), contracting_tree(), wave_sim(), jacobi()];
        assert_eq!(all.each_ref().map(Topology::len), [100, 30, 31, 31, 203, 51]);
        for topology in all {
            for node in [None, Some(Node::middle(1)), Some(Node::middle(16))] {
                topology.generate(node).unwrap();
            }
            topology.with_new_mappers().with_epoch().generate(Some(Node::middle(16))).unwrap();
        }
    }
}
