//! Uneven work that balances itself by measured times.
//!
//! `cargo run --release -p anabranch --example load`, or `mpirun -n 2 target/release/examples/load`
//!
//! The work for a row grows with its number, so the last node has far more to do than the first. Each node
//! measures how long it computes. Now and then all nodes tell each other their times, and each gets a share
//! of the rows in proportion to the speed that it had: what it has done, divided by its time. The same works
//! for nodes of different speed. The data follows the shares, and the results keep their bits.
//!
//! Without `mpirun` the program runs on two nodes in this process.

use anabranch::{local_nodes, prelude::*};
use std::{
    mem::swap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

const ROWS: usize = 240;
const COLS: usize = 32;
/// The nodes look at their times after this number of steps.
const STEPS: usize = 8;
const ROUNDS: usize = 6;

fn main() -> Result<(), Error> {
    let even = run(false)?;
    let balanced = run(true)?;
    assert!(even.iter().zip(&balanced).all(|(a, b)| a == b), "the weights change no result");
    Ok(())
}

/// The results of all nodes of this process.
fn run(balances: bool) -> Result<Vec<Vec<f64>>, Error> {
    if Runtime::launched()?.is_some() {
        return Ok(vec![simulate(Runtime::new()?, balances)?]);
    }
    local_nodes(2).threads(1).run(move |rt| simulate(rt, balances)).into_iter().collect()
}

fn simulate(rt: Runtime, balances: bool) -> Result<Vec<f64>, Error> {
    let (mut u, mut next) = (rt.buffer::<f64, 2>([ROWS, COLS]), rt.buffer::<f64, 2>([ROWS, COLS]));
    rt.task("begin").over([ROWS, COLS]).write(&u, one_to_one()).kernel(|_, (u,)| {
        u.fill_with(|[y, x]| ((y * COLS + x) % 97) as f64 / 97.0);
    })?;
    let busy = Arc::new(AtomicU64::new(0));
    let mut weights = vec![1.0; rt.nodes().into()];
    for round in 0..ROUNDS {
        for _ in 0..STEPS {
            step(&rt, &u, &next, &busy)?;
            swap(&mut u, &mut next);
        }
        rt.wait()?;
        // The same times on all nodes, and so the same weights.
        let times = rt.agree(busy.swap(0, Relaxed) as f64)?;
        if rt.node() == 0 && (round == 0 || round + 1 == ROUNDS) {
            report(round, balances, &times);
        }
        if balances {
            share_by_speed(&mut weights, &times);
            rt.set_weights(&weights)?;
        }
    }
    Ok(rt.drain(u.capture())?.into_vec())
}

/// Makes the share of each node what it has done in a unit of time.
fn share_by_speed(weights: &mut [f64], times: &[f64]) {
    for (weight, time) in weights.iter_mut().zip(times) {
        *weight /= time.max(1.0); // a node without rows takes no time
    }
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
}

fn report(round: usize, balances: bool, times: &[f64]) {
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let longest = times.iter().fold(0.0, |a: f64, b| a.max(*b));
    println!(
        "{} weights, steps {:2} to {:2}: the slowest node computes {:.2} times as long as the mean",
        if balances { "with" } else { "without" },
        round * STEPS + 1,
        (round + 1) * STEPS,
        longest / mean
    );
}

/// A step whose work for a row grows with the number of the row. Adds the time that this node computes to
/// `busy`.
fn step(rt: &Runtime, u: &Buffer<f64, 2>, next: &Buffer<f64, 2>, busy: &Arc<AtomicU64>) -> Result<(), Error> {
    let busy = Arc::clone(busy);
    rt.task("step").over([ROWS, COLS]).read(u, neighborhood([1, 0])).write(next, one_to_one()).kernel(
        move |tile, (u, next)| {
            let begin = Instant::now();
            tile.points().for_each(|[y, x]| {
                let above = u[[y.max(1) - 1, x]];
                let below = u[[(y + 1).min(ROWS - 1), x]];
                let mut value = 0.25 * (above + below) + 0.5 * u[[y, x]];
                for _ in 0..y {
                    value = 3.7 * value * (1.0 - value);
                }
                next.set([y, x], value);
            });
            busy.fetch_add(begin.elapsed().as_nanos() as u64, Relaxed);
        },
    )?;
    Ok(())
}
