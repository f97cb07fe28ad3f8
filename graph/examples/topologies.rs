//! How long it takes to derive the graphs of typical programs: nanoseconds per task, the minimum of many rounds.
//!
//! `cargo run --release -p anabranch-graph --example topologies [part of a name] [horizons|done]`
//!
//! A task's time includes mapping its index space to the regions of its accesses. `horizons`: as on several nodes,
//! nothing is known about what has finished. `done`: as in a runtime, where all but the last thousand tasks have.

use anabranch_graph::{
    Access, BufferId, Effect, Horizons, Mode, ObjectId, Order, Settings, Submitted, TaskGraph, TaskId,
};
use anabranch_grid::{Chunk, Extent, GridBox, RangeMapper, all, neighborhood, one_to_one, slice, transposed};
use std::{hint::black_box, time::Instant};

/// A graph being built, as a program does it: tasks with an index space, accesses by range mapper.
pub struct Program {
    graph: TaskGraph,
    /// So many of the last tasks are not done.
    lead: Option<u64>,
    accesses: Vec<Access>,
    effects: Vec<Effect>,
    submitted: Submitted,
    tasks: u64,
}

/// A task of a [`Program`], about to be submitted.
pub struct Task<'p, const K: usize> {
    program: &'p mut Program,
    chunk: Chunk<K>,
}

impl Program {
    /// A program without tasks. `lead`: how many of the last tasks are not known to be done; `None`: none is known.
    pub fn new(settings: Settings, lead: Option<u64>) -> Self {
        let graph = TaskGraph::with(settings);
        let submitted = Submitted::default();
        Self { graph, lead, accesses: Vec::new(), effects: Vec::new(), submitted, tasks: 0 }
    }

    /// A buffer with or without contents.
    pub fn buffer<const B: usize>(&mut self, extent: [usize; B], initialised: bool) -> BufferId {
        self.graph.create_buffer(Extent(extent).cast(), initialised)
    }

    /// A host object.
    pub fn object(&mut self) -> ObjectId {
        self.graph.create_object()
    }

    /// The next task.
    pub fn task<const K: usize>(&mut self, space: impl Into<Extent<K>>) -> Task<'_, K> {
        self.accesses.clear();
        self.effects.clear();
        Task { program: self, chunk: Chunk::whole(GridBox::full(space)) }
    }
}

impl<const K: usize> Task<'_, K> {
    /// Declares an access to a buffer of this extent.
    pub fn access<const B: usize>(
        self,
        buffer: BufferId,
        extent: [usize; B],
        mode: Mode,
        mapper: impl RangeMapper<K, B>,
    ) -> Self {
        let region = mapper.map(&self.chunk, Extent(extent)).cast();
        self.program.accesses.push(Access { buffer, region, mode });
        self
    }

    /// Declares an effect.
    pub fn effect(self, object: ObjectId, order: Order) -> Self {
        self.program.effects.push(Effect { object, order });
        self
    }

    /// Submits the task.
    pub fn submit(self) {
        let Program { graph, lead, accesses, effects, submitted, tasks } = self.program;
        *tasks += 1;
        let done_before = lead.map_or(0, |lead| graph.len().saturating_sub(lead));
        let done = |task: TaskId| task.0 < done_before;
        graph.submit_into(accesses, effects, &done, submitted).expect("a correct program");
    }
}

/// Each task writes its own column of one buffer.
pub fn soup(program: &mut Program) {
    let extent = [100, 100];
    let u = program.buffer(extent, false);
    for column in 0..100 {
        let own = |_: &Chunk<1>, extent: Extent<2>| GridBox::new([0, column], [extent[0], column + 1]);
        program.task([100]).access(u, extent, Mode::Write, own).submit();
    }
}

/// Each task transposes one of two buffers into the other.
pub fn chain(program: &mut Program) {
    let extent = [100, 100];
    let (mut from, mut to) = (program.buffer(extent, true), program.buffer(extent, true));
    for _ in 0..30 {
        program
            .task(extent)
            .access(from, extent, Mode::Read, transposed())
            .access(to, extent, Mode::Write, one_to_one())
            .submit();
        std::mem::swap(&mut from, &mut to);
    }
}

/// A level of a tree: `parts` tasks, each reads a share of one buffer and writes it in another.
fn level(program: &mut Program, from: BufferId, to: BufferId, parts: usize) {
    let (extent, size) = ([64, 64], 64 / parts);
    for part in 0..parts {
        let own =
            |_: &Chunk<2>, extent: Extent<2>| GridBox::new([part * size, 0], [(part + 1) * size, extent[1]]);
        program
            .task(extent)
            .access(from, extent, Mode::Read, own)
            .access(to, extent, Mode::Write, own)
            .submit();
    }
}

/// Levels of 1, 2, 4, 8 and 16 tasks.
pub fn expanding_tree(program: &mut Program) {
    let [mut from, mut to] = [true, false].map(|initialised| program.buffer([64, 64], initialised));
    for parts in [1, 2, 4, 8, 16] {
        level(program, from, to, parts);
        std::mem::swap(&mut from, &mut to);
    }
}

/// Levels of 16, 8, 4, 2 tasks and 1.
pub fn contracting_tree(program: &mut Program) {
    let [mut from, mut to] = [true, false].map(|initialised| program.buffer([64, 64], initialised));
    for parts in [16, 8, 4, 2, 1] {
        level(program, from, to, parts);
        std::mem::swap(&mut from, &mut to);
    }
}

/// The wave equation: two buffers that swap, a 5-point stencil; three tasks prepare it.
pub fn wave_sim(program: &mut Program) {
    let extent = [512, 512];
    let (mut u, mut before) = (program.buffer(extent, false), program.buffer(extent, false));
    for buffer in [u, before] {
        program.task(extent).access(buffer, extent, Mode::Write, one_to_one()).submit();
    }
    for _ in 0..201 {
        program
            .task(extent)
            .access(u, extent, Mode::Read, neighborhood([1, 1]))
            .access(before, extent, Mode::Update, one_to_one())
            .submit();
        std::mem::swap(&mut u, &mut before);
    }
}

/// Jacobi iterations: a matrix by rows, a right-hand side, and two vectors that swap.
pub fn jacobi(program: &mut Program) {
    let (matrix, vector) = ([256, 256], [256]);
    let a = program.buffer(matrix, true);
    let b = program.buffer(vector, true);
    let (mut x, mut next) = (program.buffer(vector, false), program.buffer(vector, false));
    program.task(vector).access(x, vector, Mode::Write, one_to_one()).submit();
    let rows = |chunk: &Chunk<1>, extent: Extent<2>| {
        GridBox::new([chunk.range.min()[0], 0], [chunk.range.max()[0], extent[1]])
    };
    for _ in 0..50 {
        program
            .task(vector)
            .access(a, matrix, Mode::Read, rows)
            .access(b, vector, Mode::Read, one_to_one())
            .access(x, vector, Mode::Read, all())
            .access(next, vector, Mode::Write, one_to_one())
            .submit();
        std::mem::swap(&mut x, &mut next);
    }
}

/// A product of matrices, by bands of rows.
pub fn matmul(program: &mut Program) {
    let extent = [256, 256];
    let [a, b, c] = [true, true, false].map(|initialised| program.buffer(extent, initialised));
    for _ in 0..30 {
        program
            .task(extent)
            .access(a, extent, Mode::Read, slice(1))
            .access(b, extent, Mode::Read, slice(0))
            .access(c, extent, Mode::Write, one_to_one())
            .submit();
    }
}

/// A stencil whose tasks are tiles: each reads its neighbourhood in one buffer and writes itself in the other.
pub fn tiles(program: &mut Program) {
    let extent = [512, 512];
    let (mut u, mut next) = (program.buffer(extent, true), program.buffer(extent, true));
    for _ in 0..8 {
        for tile in GridBox::full([16, 16]).points() {
            let own = GridBox::new(tile.0.map(|c| 32 * c), tile.0.map(|c| 32 * c + 32));
            let around = move |chunk: &Chunk<2>, extent: Extent<2>| {
                neighborhood([1, 1]).map(&Chunk { range: own, global: chunk.global }, extent)
            };
            program
                .task(extent)
                .access(u, extent, Mode::Read, around)
                .access(next, extent, Mode::Write, move |_: &Chunk<2>, _: Extent<2>| own)
                .submit();
        }
        std::mem::swap(&mut u, &mut next);
    }
}

/// Task (i, j) changes element j and reads element j - 1.
pub fn wavefront(program: &mut Program) {
    let extent = [316];
    let u = program.buffer(extent, true);
    for task in 0..100_000 {
        let j = task % 316;
        let point = |j| move |_: &Chunk<1>, _: Extent<1>| GridBox::new([j], [j + 1]);
        let task = program.task([1]).access(u, extent, Mode::Update, point(j));
        if j > 0 {
            task.access(u, extent, Mode::Read, point(j - 1)).submit()
        } else {
            task.submit()
        };
    }
}

/// Each task has a sequential effect on the same object.
pub fn effects(program: &mut Program) {
    let object = program.object();
    for _ in 0..100_000 {
        program.task([1]).effect(object, Order::Sequential).submit();
    }
}

/// Tasks that touch nothing.
pub fn nothing(program: &mut Program) {
    for _ in 0..100_000 {
        program.task([1]).submit();
    }
}

/// A program by name.
pub type Topology = (&'static str, fn(&mut Program));

/// All of them.
pub const TOPOLOGIES: [Topology; 11] = [
    ("soup", soup),
    ("chain", chain),
    ("expanding tree", expanding_tree),
    ("contracting tree", contracting_tree),
    ("wave_sim", wave_sim),
    ("jacobi", jacobi),
    ("matmul", matmul),
    ("tiles", tiles),
    ("wavefront", wavefront),
    ("effects", effects),
    ("nothing", nothing),
];

/// Nanoseconds per task, the minimum of `rounds` programs.
pub fn measure(topology: fn(&mut Program), settings: Settings, lead: Option<u64>, rounds: usize) -> f64 {
    let round = || {
        let mut program = Program::new(settings, lead);
        let start = Instant::now();
        topology(&mut program);
        let time = start.elapsed().as_nanos() as f64 / program.tasks as f64;
        black_box(program);
        time
    };
    (0..rounds).map(|_| round()).fold(f64::INFINITY, f64::min)
}

fn main() {
    let mut args = std::env::args().skip(1);
    let wanted = args.next().unwrap_or_default();
    let modes = args.next().unwrap_or("horizons,done".into());
    let pure = Settings { horizons: Some(Horizons::default()), conflicts: false };
    let modes = [("horizons", pure, None), ("done", Settings::default(), Some(1000))]
        .map(|m| (modes.contains(m.0), m));
    println!("{:18} {:>9} {:>9}   ns per task", "", "horizons", "done");
    for (name, topology) in TOPOLOGIES.into_iter().filter(|(name, _)| name.contains(&wanted)) {
        let mut probe = Program::new(Settings::default(), Some(1000));
        topology(&mut probe);
        let rounds = (1_000_000 / probe.tasks as usize).clamp(10, 5000);
        print!("{name:18}");
        for (wanted, (_, settings, lead)) in modes {
            let time = if wanted { measure(topology, settings, lead, rounds) } else { f64::NAN };
            print!(" {time:9.0}");
        }
        println!();
    }
}
