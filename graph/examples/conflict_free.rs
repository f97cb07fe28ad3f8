//! What a conflict costs, and what the cap on rejected candidates does to the size of conflict-free sets.
//!
//! The graphs are tasks without dependencies, with conflicts sampled uniformly. A *pass* is the call that makes all of them
//! eligible at once while nothing runs: it looks up the tasks, searches the set, starts it and queues the others. Inserting
//! the tasks with their conflicts is not part of it. `cargo run --release -p anabranch-graph --example conflict_free`

#[path = "../tests/optimum/mod.rs"]
mod optimum;

use anabranch_graph::{ConflictScheduler, Effect, ObjectId, Order, TaskId};
use optimum::optimum;
use std::time::{Duration, Instant};

const GRAPHS: u64 = 10;
const REPETITIONS: usize = 15;
/// Up to here the optimum is found in an instant.
const SMALL: usize = 64;

fn main() {
    println!("Largest conflict-free sets by backtracking (means over {GRAPHS} graphs; µs per pass)\n");
    print!("{:>6} {:>10} {:>8}", "tasks", "conflicts", "optimum");
    let caps = [1, 10, 100, 1_000, 10_000];
    caps.iter().for_each(|cap| print!(" | {:>6} size  mean  worst", format!("≤{cap}")));
    println!();
    for (tasks, conflicts) in [
        (20, 60),
        (40, 80),
        (40, 200),
        (60, 400),
        (60, 1_200),
        (100, 500),
        (300, 3_000),
        (900, 10_000),
        (900, 40_000),
    ] {
        let graphs: Vec<_> = (0..GRAPHS).map(|seed| uniform(tasks, conflicts, seed)).collect();
        print!("{tasks:>6} {conflicts:>10} {:>8}", optimal_size(&graphs));
        for cap in caps {
            let row = cap_row(&graphs, cap);
            print!(" | {:>11.2} {:>5.1} {:>6.1}", row.size, micros(row.mean), micros(row.worst));
        }
        println!();
    }

    println!("\nns per task, from inserted to finished");
    println!("{:>8.1}  200 mutually exclusive tasks, one object", exclusive_by_object(200));
    println!("{:>8.1}  200 mutually exclusive tasks, explicit conflicts", exclusive_by_conflicts(200));
    println!("{:>8.1}  100,000 exclusive tasks on one object, at most 4,000 alive", chain(100_000, 4_000));
    println!("{:>8.1}  900 tasks with 10,000 conflicts, without inserting them", drained(900, 10_000));
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The partners of each task among the tasks before it.
type Graph = Vec<Vec<TaskId>>;

/// `conflicts` different pairs of `tasks` tasks.
fn uniform(tasks: usize, conflicts: usize, seed: u64) -> Graph {
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
        if a < b && !graph[b].contains(&TaskId(a as u64)) {
            graph[b].push(TaskId(a as u64));
            left -= 1;
        }
    }
    graph
}

fn insert(scheduler: &mut ConflictScheduler, graph: &Graph) {
    for (task, partners) in graph.iter().enumerate() {
        scheduler.insert_with(TaskId(task as u64), 0, &[], partners);
    }
}

fn ids(graph: &Graph) -> Vec<TaskId> {
    (0..graph.len() as u64).map(TaskId).collect()
}

/// The mean size of the largest sets, if it can be had.
fn optimal_size(graphs: &[Graph]) -> String {
    let exact = |graph: &Graph| {
        let mut rows = vec![0; graph.len()];
        for (task, partner) in graph.iter().enumerate().flat_map(|(t, ps)| ps.iter().map(move |p| (t, p))) {
            rows[task] |= 1 << partner.0;
            rows[partner.0 as usize] |= 1 << task;
        }
        optimum(&rows)
    };
    if graphs[0].len() > SMALL {
        return "-".into();
    }
    format!("{:.2}", graphs.iter().map(exact).sum::<usize>() as f64 / graphs.len() as f64)
}

struct CapRow {
    size: f64,
    mean: Duration,
    worst: Duration,
}

/// One cap over all graphs; of each graph the fastest pass counts.
fn cap_row(graphs: &[Graph], cap: usize) -> CapRow {
    let (mut size, mut sum, mut worst) = (0, Duration::ZERO, Duration::ZERO);
    for graph in graphs {
        let (set, time) = pass(graph, cap);
        (size, sum, worst) = (size + set, sum + time, worst.max(time));
    }
    CapRow { size: size as f64 / graphs.len() as f64, mean: sum / graphs.len() as u32, worst }
}

/// The size of the set and the time of the fastest pass.
fn pass(graph: &Graph, cap: usize) -> (usize, Duration) {
    let (ids, mut start, mut fastest) = (ids(graph), Vec::new(), Duration::MAX);
    let mut scheduler = ConflictScheduler::with_candidates(cap);
    let mut size = 0;
    for _ in 0..REPETITIONS {
        insert(&mut scheduler, graph);
        start.clear();
        let before = Instant::now();
        scheduler.update(&[], &ids, &mut start);
        fastest = fastest.min(before.elapsed());
        size = start.len();
        scheduler.update(&ids, &[], &mut start);
    }
    (size, fastest)
}

/// The fastest of several runs of `tasks` tasks, per task.
fn fastest(tasks: usize, mut run: impl FnMut() -> Duration) -> f64 {
    let fastest = (0..3 * REPETITIONS).map(|_| run()).min().unwrap_or_default();
    fastest.as_secs_f64() * 1e9 / tasks as f64
}

/// Makes all tasks eligible, one by one, and finishes them as they were started.
fn run_all(scheduler: &mut ConflictScheduler, tasks: u64, start: &mut Vec<TaskId>) {
    start.clear();
    (0..tasks).for_each(|n| scheduler.eligible(TaskId(n), start));
    let mut next = 0;
    while let Some(&task) = start.get(next) {
        scheduler.finished(task, start);
        next += 1;
    }
    assert_eq!(start.len() as u64, tasks);
}

const ONE: Effect = Effect { object: ObjectId(1), order: Order::Exclusive };

fn exclusive_by_object(tasks: usize) -> f64 {
    let (mut scheduler, mut start) = (ConflictScheduler::new(), Vec::new());
    fastest(tasks, || {
        let before = Instant::now();
        (0..tasks as u64).for_each(|n| scheduler.insert(TaskId(n), 0, &[ONE]));
        run_all(&mut scheduler, tasks as u64, &mut start);
        before.elapsed()
    })
}

fn exclusive_by_conflicts(tasks: usize) -> f64 {
    let graph: Graph = (0..tasks as u64).map(|n| (0..n).map(TaskId).collect()).collect();
    let (mut scheduler, mut start) = (ConflictScheduler::new(), Vec::new());
    fastest(tasks, || {
        let before = Instant::now();
        insert(&mut scheduler, &graph);
        run_all(&mut scheduler, tasks as u64, &mut start);
        before.elapsed()
    })
}

/// New tasks arrive while the older ones run.
fn chain(tasks: usize, alive: usize) -> f64 {
    let (mut scheduler, mut start) = (ConflictScheduler::new(), Vec::with_capacity(tasks));
    fastest(tasks, || {
        start.clear();
        let before = Instant::now();
        for n in 0..tasks {
            scheduler.insert(TaskId(n as u64), 0, &[ONE]);
            scheduler.eligible(TaskId(n as u64), &mut start);
            if n >= alive {
                scheduler.finished(start[n - alive], &mut start);
            }
        }
        (tasks - alive..tasks).for_each(|n| scheduler.finished(start[n], &mut start));
        before.elapsed()
    })
}

/// A first pass, then one call for each task that finishes.
fn drained(tasks: usize, conflicts: usize) -> f64 {
    let graph = uniform(tasks, conflicts, 1);
    let (ids, mut scheduler, mut start) = (ids(&graph), ConflictScheduler::new(), Vec::new());
    fastest(tasks, || {
        insert(&mut scheduler, &graph);
        start.clear();
        let before = Instant::now();
        scheduler.update(&[], &ids, &mut start);
        let mut next = 0;
        while let Some(&task) = start.get(next) {
            scheduler.finished(task, &mut start);
            next += 1;
        }
        before.elapsed()
    })
}
