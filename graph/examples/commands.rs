//! What generating the commands of one node costs, in microseconds per task.
//!
//! `cargo run --release -p anabranch-graph --example commands` prints the minimum of many rounds for several topologies,
//! numbers of nodes and nodes. A round builds a whole graph from nothing.

use anabranch_graph::{BufferId, Mode, TaskId, command::*};
use anabranch_grid::*;
use std::{hint::black_box, sync::Arc, time::Instant};

/// A program: its buffers' extents, and its tasks.
struct Program {
    buffers: Vec<Extent<3>>,
    tasks: Vec<(Work, Vec<BufferAccess>)>,
    /// A horizon comes after every so many tasks.
    horizon: usize,
}

fn access(buffer: u64, mode: Mode, mapper: &Mapper) -> BufferAccess {
    BufferAccess { buffer: BufferId(buffer), mode, mapper: mapper.clone() }
}

fn flat(rows: usize, columns: usize) -> (Extent<3>, Work) {
    (Extent([rows, columns, 1]), Work::Kernel { space: GridBox::full([rows, columns, 1]) })
}

/// Each task writes its own column.
fn soup(tasks: usize) -> Program {
    let (extent, _) = flat(64, tasks);
    let work = Work::Kernel { space: GridBox::full([64, 1, 1]) };
    let task = |column: usize| {
        let mapper: Mapper = Arc::new(move |c: &Chunk<3>| {
            GridBox::new([c.range.min()[0], column, 0], [c.range.max()[0], column + 1, 1]).into()
        });
        (work, vec![access(0, Mode::Write, &mapper)])
    };
    Program { buffers: vec![extent], tasks: (0..tasks).map(task).collect(), horizon: 64 }
}

/// Each task needs what all nodes have, transposed.
fn chain(tasks: usize) -> Program {
    let (extent, work) = flat(256, 256);
    let rows: Mapper = erase::<2, 2>(one_to_one(), Extent([256, 256]));
    let columns: Mapper = erase::<2, 2>(transposed(), Extent([256, 256]));
    let mut list = vec![(work, vec![access(0, Mode::Write, &rows)])];
    list.extend(
        (1..tasks).map(|t| (work, vec![access(0, Mode::Update, if t % 2 == 0 { &rows } else { &columns })])),
    );
    Program { buffers: vec![extent], tasks: list, horizon: 4 }
}

/// Levels of tasks with 1, 2, 4, … parts of a buffer, or the other way round.
fn tree(levels: usize, expanding: bool) -> Program {
    let size = 1024;
    let mut list = Vec::new();
    let whole: Mapper = erase::<1, 1>(one_to_one(), Extent([size]));
    let all = Work::Kernel { space: GridBox::full([size, 1, 1]) };
    list.push((all, vec![access(0, Mode::Write, &whole)]));
    for level in 0..levels {
        let parts = 1 << if expanding { level } else { levels - 1 - level };
        let part = size / parts;
        for at in 0..parts {
            let work = Work::Kernel { space: GridBox::full([part, 1, 1]) };
            let mapper: Mapper = Arc::new(move |c: &Chunk<3>| {
                let (min, max) = (c.range.min()[0], c.range.max()[0]);
                GridBox::new([at * part + min, 0, 0], [at * part + max, 1, 1]).into()
            });
            let (from, to) = (level as u64 % 2, (level as u64 + 1) % 2);
            list.push((work, vec![access(from, Mode::Read, &mapper), access(to, Mode::Write, &mapper)]));
        }
    }
    Program { buffers: vec![Extent([size, 1, 1]); 2], tasks: list, horizon: 16 }
}

/// A stencil over two buffers that swap. `update`: what is written was read at the same point.
fn stencil(rows: usize, steps: usize, update: bool, cross: bool) -> Program {
    let (extent, work) = flat(rows, rows);
    let flat = Extent([rows, rows]);
    let near = if cross { neighborhood([1, 1]).along_axes() } else { neighborhood([1, 1]) };
    let (near, point) = (erase::<2, 2>(near, flat), erase::<2, 2>(one_to_one(), flat));
    let mut list = vec![(work, vec![access(0, Mode::Write, &point)])];
    if update {
        list.push((work, vec![access(1, Mode::Write, &point)]));
        list.push((work, vec![access(1, Mode::Update, &point)]));
    }
    let mode = if update { Mode::Update } else { Mode::Write };
    list.extend(
        (0..steps as u64).map(|step| {
            (work, vec![access(step % 2, Mode::Read, &near), access((step + 1) % 2, mode, &point)])
        }),
    );
    Program { buffers: vec![extent; 2], tasks: list, horizon: 4 }
}

/// Seconds for a whole graph, and the number of commands.
fn generate(program: &Program, node: u16, nodes: u16) -> (f64, usize) {
    let start = Instant::now();
    let mut graph = CommandGraph::new(NodeId(node), nodes);
    for (number, extent) in program.buffers.iter().enumerate() {
        graph.create_buffer(BufferId(number as u64), *extent, false);
    }
    let (mut task, mut commands) = (0, 0);
    for (number, (work, accesses)) in program.tasks.iter().enumerate() {
        task += 1;
        let launch = Launch { accesses, ..Launch::new(TaskId(task), *work) };
        commands += black_box(graph.launch(&launch).expect("a valid program")).len();
        if number % program.horizon == program.horizon - 1 {
            task += 1;
            commands += graph.launch(&Launch::new(TaskId(task), Work::Horizon)).expect("a horizon").len();
        }
    }
    (start.elapsed().as_secs_f64(), commands)
}

/// Microseconds per task, at best.
fn measure(program: &Program, node: u16, nodes: u16) -> f64 {
    let rounds = 300;
    let best = (0..rounds).map(|_| generate(program, node, nodes).0).fold(f64::MAX, f64::min);
    best / program.tasks.len() as f64 * 1e6
}

fn main() {
    let programs = [
        ("soup", soup(100)),
        ("chain", chain(30)),
        ("expanding tree", tree(5, true)),
        ("contracting tree", tree(5, false)),
        ("wave_sim", stencil(512, 200, true, false)),
        ("wave_sim, cross", stencil(512, 200, true, true)),
        ("jacobi", stencil(512, 50, false, false)),
    ];
    println!(
        "{:18}{:>8}{:>12}{:>12}{:>12}{:>12}",
        "µs per task", "1 node", "first of 4", "second of 4", "first of 16", "8th of 16"
    );
    for (name, program) in &programs {
        print!("{name:18}");
        for (node, nodes, width) in [(0, 1, 8), (0, 4, 12), (1, 4, 12), (0, 16, 12), (7, 16, 12)] {
            print!("{:>width$.2}", measure(program, node, nodes));
        }
        println!("   {} commands on the 8th of 16", generate(program, 7, 16).1);
    }
    for rows in [512, 8192] {
        let wave = stencil(rows, 200, true, false);
        let (few, many) = (measure(&wave, 1, 4), measure(&wave, 200, 4096));
        println!("wave_sim on {rows}²: 4,096 nodes {many:.2}, 4 nodes {few:.2}, ratio {:.2}", many / few);
    }
}
