//! Recorded kernels: what recording costs, and how fast a recording is beside the same loop, compiled.

use std::{hint::black_box, mem::swap};

use anabranch::{
    Error, Runtime,
    grid::{neighborhood, one_to_one},
    recorded::{Input, Output, Value},
};
use anabranch_kernel::Tape;
use anabranch_par::{ThreadPool, prelude::*};

use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    peers::{
        ndarray_gray_scott::{self, Vectors},
        pools::flushing_rayon_pool,
    },
    row::{Row, times},
};

const COMPILED: &str = "compiled loop, AVX-512";
const LOOP: &str = "anabranch-par";

pub fn rows() -> Vec<Row> {
    vec![
        Row::lower(
            "kernels/gray-scott-step",
            "ns",
            "per cell of 1080 × 1920: a step of the model as a recorded kernel, on one thread",
            gray_scott_step,
        )
        .bar(times(2.0, COMPILED))
        .better(times(1.3, COMPILED)),
        Row::lower(
            "kernels/record-gray-scott",
            "us",
            "recording that kernel, of 68 operations and literals",
            record,
        )
        .bar(5.0)
        .better(2.0),
        Row::lower(
            "kernels/sum-1e7",
            "ms",
            "the sum of 10,000,000 `f32` by a recorded kernel, with the same bits on any number of threads",
            sum,
        )
        .bar(times(1.2, LOOP))
        .better(times(1.0, LOOP)),
    ]
}

/// A step of the model, as `gray-scott` computes it, with zeros outside the grid.
fn step<'t>(
    (u, v, next_u, next_v): (Input<'t, f32, 2>, Input<'t, f32, 2>, Output<'t, f32, 2>, Output<'t, f32, 2>),
) {
    let (here_u, here_v) = (u.here(), v.here());
    let reaction = here_u * here_v * here_v;
    next_u.set(here_u + 1.0 * (0.1 * laplacian(u) - reaction + 0.014 * (1.0 - here_u)));
    next_v.set(here_v + 1.0 * (0.05 * laplacian(v) + reaction - (0.014 + 0.054) * here_v));
}

fn laplacian<'t>(w: Input<'t, f32, 2>) -> Value<'t, f32> {
    let at = |y, x| w.at_or([y, x], 0.0);
    let corners = at(-1, -1) + at(-1, 1) + at(1, -1) + at(1, 1);
    0.25 * corners + 0.5 * (at(-1, 0) + at(0, -1) + at(0, 1) + at(1, 0)) - 3.0 * w.here()
}

/// Steps of a runtime with one thread.
fn recorded(shape: [usize; 2], steps: usize) -> Result<impl FnMut() -> Result<Vec<f64>, Failure>, Error> {
    let runtime = Runtime::builder().threads(1).build()?;
    let [mut u, mut v, mut next_u, mut next_v] = [(); 4].map(|()| runtime.buffer::<f32, 2>(shape));
    let start = runtime.task("start").over(shape).write(&u, one_to_one()).write(&v, one_to_one());
    start.each(move |(u, v)| {
        let within = |dim: usize| {
            let (at, size) = (u.index(dim), shape[dim] as u32);
            at.ge(size * 7 / 16) & at.lt(size * 8 / 16)
        };
        let is_spot = within(0) & within(1);
        u.set(is_spot.select(0.0, 1.0));
        v.set(is_spot.select(1.0, 0.0));
    })?;
    let around = || neighborhood([1, 1]);
    Ok(move || {
        let load = Load::back_to_back(1, steps);
        let samples = load.try_time(|| -> Result<(), Error> {
            let task = runtime.task("step").over(shape).flush_denormals();
            let task = task.read(&u, around()).read(&v, around());
            task.write(&next_u, one_to_one()).write(&next_v, one_to_one()).each(step)?;
            swap(&mut u, &mut next_u);
            swap(&mut v, &mut next_v);
            runtime.wait()
        })?;
        Ok(samples.into_iter().map(|ns| ns / (shape[0] * shape[1]) as f64).collect())
    })
}

fn gray_scott_step(context: &Context) -> Result<Outcome, Failure> {
    let shape = [1080, 1920].map(|side| side / context.pick(1, 8));
    let steps = context.pick(100, 2);
    let compiled = Vectors::avx512().map(|vectors| -> Result<_, Failure> {
        let pool = flushing_rayon_pool(1)?;
        let mut simulation = ndarray_gray_scott::Simulation::new(shape);
        Ok(move || -> Result<Vec<f64>, Failure> {
            let load = Load::back_to_back(1, steps);
            let samples = load.time(|| pool.install(|| simulation.step(vectors)));
            Ok(samples.into_iter().map(|ns| ns / (shape[0] * shape[1]) as f64).collect())
        })
    });
    let compiled = match compiled {
        Ok(made) => Ok(made?),
        Err(left_out) => Err(left_out),
    };
    Contest::ours(recorded(shape, steps)?)
        .peer_if(compiled, COMPILED, |visit| visit())
        .run(context, context.pick(10, 1))
}

/// A task and waiting for it, beside a loop over the same number of elements.
fn sum(context: &Context) -> Result<Outcome, Failure> {
    let elements: Vec<f32> = (0..context.pick(10_000_000, 100_000)).map(|at| (at % 1000) as f32).collect();
    let (space, load) = ([elements.len()], Load::back_to_back(context.pick(5, 2), 1));
    let runtime = Runtime::builder().threads(context.threads).build()?;
    let (u, total) = (runtime.buffer_from(&elements)?, runtime.buffer::<f32, 0>([]));
    let pool = ThreadPool::new(context.threads)?;
    let ours = || -> Result<Vec<f64>, Failure> {
        let times = load.try_time(|| {
            let task = runtime.task("sum").over(space).read(&u, one_to_one());
            task.reduce(&total, anabranch::sum()).each(|(u, total)| total.combine(u.here()))?;
            runtime.wait()
        })?;
        Ok(times.into_iter().map(|ns| ns / 1e6).collect())
    };
    let by_loop = || -> Result<Vec<f64>, Failure> {
        let times = load.time(|| {
            black_box(elements.par().on(&pool).sum());
        });
        Ok(times.into_iter().map(|ns| ns / 1e6).collect())
    };
    Contest::ours(ours).peer(LOOP, by_loop).run(context, context.pick(10, 1))
}

fn record(context: &Context) -> Result<Outcome, Failure> {
    let load = Load::back_to_back(context.pick(100, 3), context.pick(1000, 1));
    Contest::ours(|| {
        let times = load.try_time(|| {
            let tape = Tape::new(2);
            step((tape.input(), tape.input(), tape.output(), tape.output()));
            tape.finish().map(|recording| {
                black_box(recording.program_hash());
            })
        })?;
        Ok(times.into_iter().map(|ns| ns / 1e3).collect())
    })
    .run(context, context.pick(10, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recorded_kernel_has_68_operations_and_literals() {
        let _deadline = testing::deadline();
        let tape = Tape::new(2);
        step((tape.input(), tape.input(), tape.output(), tape.output()));
        assert_eq!(tape.finish().unwrap().len(), 68);
    }
}
