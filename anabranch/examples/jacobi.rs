//! Iterates until the solution has converged, without ever stalling.
//!
//! `cargo run --release -p anabranch --example jacobi`
//!
//! The program needs another step if the residual of the last one is too large: data-dependent control flow.
//! The obvious loop submits a step, waits for its residual and decides. While the program decides and
//! submits, no thread computes.
//!
//! This program keeps a *window* of steps in flight. A fence captures the residual of each step, and the
//! program waits only for the oldest fence of the window. If that step has not converged, the next steps are
//! already being computed. The price is a few steps beyond the one that converged: one less than the width of
//! the window. They do no harm, but improve the solution a little.
//!
//! The number of steps does not depend on timing, because the decisions depend on residuals alone.
//!
//! There is a shorter way: the steps are recorded once, and the runtime replays them until the residual is
//! below the threshold. On one node a step then costs no submission, and the program does not wait in
//! between.

use anabranch::{Fence, prelude::*};
use std::{collections::VecDeque, time::Instant};

const N: usize = 48;
const THRESHOLD: f64 = 1e-6;
const STEPS_AT_MOST: usize = 20_000;

struct Solution {
    /// The node that has it: all nodes of a program have the same solution, and the first one prints.
    node: u16,
    /// The first step whose residual is below the threshold.
    converged: usize,
    residual: f64,
    /// The number of steps submitted by the time the program saw that residual.
    submitted: usize,
    field: Snapshot<f64, 2>,
}

fn main() -> Result<(), Error> {
    let mut solutions = Vec::new();
    for window in [1, 8] {
        let begin = Instant::now();
        let solution = solve(window)?;
        if solution.node == 0 {
            println!(
                "window {window}: step {} has residual {:.2e}; {} ran beyond; {:.0?}",
                solution.converged,
                solution.residual,
                solution.submitted - solution.converged,
                begin.elapsed()
            );
        }
        let error = error(&solution.field);
        assert!(solution.residual < THRESHOLD, "not converged");
        assert!(error < 1e-3, "the solution is wrong by {error}");
        assert_eq!(solution.submitted, solution.converged + window - 1);
        solutions.push(solution);
    }
    let [stalled, flowing] = [0, 1].map(|i| (solutions[i].converged, solutions[i].residual));
    assert_eq!(stalled, flowing, "the window changes nothing about the result");
    if solutions[0].node == 0 {
        println!("largest error {:.2e} and {:.2e}", error(&solutions[0].field), error(&solutions[1].field));
    }

    let rt = Runtime::new()?;
    let begin = Instant::now();
    let (steps, residual, field) = solve_recorded(&rt)?;
    if rt.node() == 0 {
        println!("recorded: step {steps} has residual {residual:.2e}; {:.0?}", begin.elapsed());
    }
    assert_eq!(steps, stalled.0.next_multiple_of(2), "the condition is asked after each second step");
    assert!(residual <= stalled.1 && error(&field) < 1e-3);
    Ok(())
}

/// Records a step there and a step back, and replays them until the solution has converged. Returns the
/// number of steps, the last residual and the solution.
fn solve_recorded(rt: &Runtime) -> Result<(usize, f64, Snapshot<f64, 2>), Error> {
    let field = rt.buffer_from(&start())?.named("field");
    let next = rt.buffer_from(&start())?.named("next");
    let residual = rt.buffer::<f64, 0>([]).named("residual");
    let steps = rt.record("two steps", |body| {
        for (from, to) in [(&field, &next), (&next, &field)] {
            body.task("smooth")
                .over(inside())
                .read(from, neighborhood([1, 1]).along_axes())
                .write(to, one_to_one())
                .reduce(&residual, max())
                .kernel(|tile, (field, next, residual)| {
                    residual.combine([], smooth_tile(tile, field, next))
                })?;
        }
        Ok(())
    })?;
    let converged =
        steps.replay_until(STEPS_AT_MOST as u64 / 2, &residual, |residual| residual[[]] < THRESHOLD)?;
    let replays = converged.wait()?.expect("it converges") as usize;
    let (residual, field) = rt.fence((&residual, &field))?.wait()?;
    Ok((2 * replays, residual[[]], field))
}

/// The field at the beginning.
fn start() -> ndarray::Array2<f64> {
    ndarray::Array2::from_shape_fn((N, N), |(y, x)| if is_edge(y, x) { exact(y, x) } else { 0.0 })
}

/// Runs steps until one has a residual below the threshold, with `window` steps in flight.
fn solve(window: usize) -> Result<Solution, Error> {
    let rt = Runtime::new()?;
    let mut field = rt.buffer_from(&start())?.named("field");
    let mut next = rt.buffer_from(&start())?.named("next");
    let residual = rt.buffer::<f64, 0>([]).named("residual");

    let mut in_flight: VecDeque<(usize, Fence<Snapshot<f64, 0>>)> = VecDeque::new();
    for step in 1..=STEPS_AT_MOST {
        smooth(&rt, &field, &next, &residual)?;
        in_flight.push_back((step, rt.fence(&residual)?));
        std::mem::swap(&mut field, &mut next);

        if in_flight.len() == window
            && let Some((converged, fence)) = in_flight.pop_front()
        {
            let residual = fence.wait()?[[]]; // the other steps of the window run meanwhile
            if residual < THRESHOLD {
                return Ok(Solution {
                    node: rt.node(),
                    converged,
                    residual,
                    submitted: step,
                    field: rt.drain(field.capture())?,
                });
            }
        }
    }
    panic!("not converged after {STEPS_AT_MOST} steps");
}

/// Submits a step. The residual is the largest change of a point.
fn smooth(
    rt: &Runtime,
    field: &Buffer<f64, 2>,
    next: &Buffer<f64, 2>,
    residual: &Buffer<f64, 0>,
) -> Result<TaskHandle, Error> {
    rt.task("smooth")
        .over(inside())
        .read(field, neighborhood([1, 1]).along_axes())
        .write(next, one_to_one())
        .reduce(residual, max())
        .kernel(|tile, (field, next, residual)| residual.combine([], smooth_tile(tile, field, next)))
}

/// Every point of the tile becomes the mean of its neighbours. Returns the largest change.
fn smooth_tile(tile: &Tile<2>, field: &ReadView<f64, 2, Cross<2>>, next: &mut WriteView<'_, f64, 2>) -> f64 {
    tile.points().fold(0.0, |largest: f64, [y, x]| {
        let mean = 0.25 * (field[[y - 1, x]] + field[[y + 1, x]] + field[[y, x - 1]] + field[[y, x + 1]]);
        next.set([y, x], mean);
        largest.max((mean - field[[y, x]]).abs())
    })
}

/// The points that are not on the edge.
fn inside() -> GridBox<2> {
    GridBox::new([1, 1], [N - 1, N - 1])
}

fn is_edge(y: usize, x: usize) -> bool {
    [y, x].iter().any(|&i| i == 0 || i == N - 1)
}

/// The exact solution: each point is the mean of its neighbours. The iteration must find it from the edges
/// alone.
fn exact(y: usize, x: usize) -> f64 {
    let [y, x] = [y, x].map(|i| i as f64 / (N - 1) as f64);
    x * x - y * y
}

fn error(field: &Snapshot<f64, 2>) -> f64 {
    let points = (0..N).flat_map(|y| (0..N).map(move |x| (y, x)));
    points.map(|(y, x)| (field[[y, x]] - exact(y, x)).abs()).fold(0.0, f64::max)
}
