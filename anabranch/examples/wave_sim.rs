//! Waves in a square basin: the two-dimensional wave equation.
//!
//! `cargo run --release -p anabranch --example wave_sim`
//!
//! A five-point stencil in space and a leapfrog in time need the field at two times. Each step overwrites the
//! older field with the new one, point by point (`update`). Two steps, of each field in turn, are recorded
//! once and replayed. At regular intervals the program captures a frame by a *fence*: the runtime takes the
//! copy when that step is done, while the program goes on submitting.

use anabranch::{Fence, SequenceBody, prelude::*};

const N: usize = 128;
const STEPS: usize = 600;
/// The number of steps between two frames, which is even.
const INTERVAL: usize = 150;
/// (c Δt / Δx)²: below 0.5, or the scheme is not stable.
const COURANT: f64 = 0.25;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;
    // A drop in the middle, at rest: the field is the same at both times. The edges stay at zero.
    let drop = ndarray::Array2::from_shape_fn((N, N), |(y, x)| {
        let edge = [y, x].iter().any(|&i| i == 0 || i == N - 1);
        let [dy, dx] = [y, x].map(|i| i as f64 - (N - 1) as f64 / 2.0);
        if edge { 0.0 } else { (-(dy * dy + dx * dx) / 40.0).exp() }
    });
    let old = rt.buffer_from(&drop)?.named("old");
    let now = rt.buffer_from(&drop)?.named("now");
    let energy = rt.buffer::<f64, 0>([]).named("energy");

    measure_energy(&rt, &old, &now, &energy)?;
    let first = rt.fence(&energy)?;
    let mut frames: Vec<(usize, Fence<Snapshot<f64, 2>>)> = Vec::new();
    let two_steps = rt.record("two steps", |body| {
        advance(body, &now, &old)?;
        advance(body, &old, &now) // after that, `now` has the newer field again
    })?;
    for step in (INTERVAL..=STEPS).step_by(INTERVAL) {
        two_steps.replay(INTERVAL as u64 / 2)?;
        frames.push((step, rt.fence(&now)?));
    }
    measure_energy(&rt, &old, &now, &energy)?;

    let prints = rt.node() == 0;
    for (step, frame) in frames {
        let frame = frame.wait()?;
        if prints {
            println!("step {step:3} |{}|", profile(&frame));
        }
        check_symmetry(&frame);
    }
    let first = first.wait()?[[]];
    let last = rt.drain(energy.capture())?[[]];
    if prints {
        println!("energy {first:.6} at the beginning, {last:.6} at the end");
    }
    assert!((last - first).abs() < 1e-9 * first, "a wave in a closed basin keeps its energy");
    Ok(())
}

/// One step in time: `old` becomes the field after `now`.
fn advance(body: &SequenceBody, now: &Buffer<f64, 2>, old: &Buffer<f64, 2>) -> Result<(), Error> {
    body.task("wave step")
        .over(GridBox::new([1, 1], [N - 1, N - 1])) // the edges never change
        .read(now, neighborhood([1, 1]).along_axes())
        .update(old, one_to_one())
        .kernel(|tile, (now, old)| {
            tile.points().for_each(|[y, x]| {
                let around = (now[[y - 1, x]] + now[[y + 1, x]]) + (now[[y, x - 1]] + now[[y, x + 1]]);
                let here = now[[y, x]];
                old[[y, x]] = 2.0 * here - old[[y, x]] + COURANT * (around - 4.0 * here);
            });
        })
}

/// The kinetic energy of the change and the potential energy of the slopes. The scheme conserves their sum
/// exactly.
fn measure_energy(
    rt: &Runtime,
    old: &Buffer<f64, 2>,
    now: &Buffer<f64, 2>,
    energy: &Buffer<f64, 0>,
) -> Result<TaskHandle, Error> {
    rt.task("energy")
        .over([N - 1, N - 1])
        .read(old, neighborhood([1, 1]).along_axes())
        .read(now, neighborhood([1, 1]).along_axes())
        .reduce(energy, sum())
        .kernel(|tile, (old, now, energy)| {
            tile.points().for_each(|[y, x]| {
                let change = now[[y, x]] - old[[y, x]];
                let slopes = [[y + 1, x], [y, x + 1]]
                    .map(|next| (now[next] - now[[y, x]]) * (old[next] - old[[y, x]]));
                energy.combine([], 0.5 * (change * change + COURANT * (slopes[0] + slopes[1])));
            });
        })
}

/// Checks that the field is as symmetric as the first drop, bit for bit.
fn check_symmetry(frame: &Snapshot<f64, 2>) {
    for (y, x) in (0..N).flat_map(|y| (0..N).map(move |x| (y, x))) {
        let mirrored = [[N - 1 - y, x], [y, N - 1 - x]];
        assert!(mirrored.iter().all(|&m| frame[m] == frame[[y, x]]), "not symmetric at row {y}, column {x}");
    }
}

/// The middle row: crests and troughs.
fn profile(frame: &Snapshot<f64, 2>) -> String {
    let row = (0..N).step_by(2).map(|x| frame[[N / 2, x]]);
    let highest = row.clone().map(f64::abs).fold(0.0, f64::max);
    row.map(|u| char::from(b"=-.  +*#"[(4.0 + 3.99 * u / highest) as usize])).collect()
}
