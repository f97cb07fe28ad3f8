//! Heat spreads over a plate: a first program.
//!
//! `cargo run --release -p anabranch --example heat` prints the plate every 200 steps.

use anabranch::prelude::*;

const ROWS: usize = 16;
const COLS: usize = 48;

fn main() -> Result<(), Error> {
    let rt = Runtime::new()?;

    // The plate is cold except for its left edge. The edges never change.
    let initial = ndarray::Array2::from_shape_fn((ROWS, COLS), |(_, x)| if x == 0 { 1.0_f32 } else { 0.0 });
    let mut plate = rt.buffer_from(&initial)?.named("plate");
    let mut next = rt.buffer::<f32, 2>([ROWS, COLS]).named("next");
    let pictures = rt.host_object(Vec::new());

    for step in 0..1000 {
        rt.task("spread")
            .over([ROWS, COLS])
            .read(&plate, neighborhood([1, 0]))
            .write(&next, one_to_one())
            .kernel(|tile, (old, new)| {
                for y in tile.rows() {
                    new.row_mut(y).copy_from_slice(old.row(y));
                    if y == 0 || y == ROWS - 1 {
                        continue;
                    }
                    let (above, here, below) = (old.row(y - 1), old.row(y), old.row(y + 1));
                    let new = new.row_mut(y);
                    for x in 1..COLS - 1 {
                        let around = above[x] + below[x] + here[x - 1] + here[x + 1];
                        new[x] = here[x] + 0.2 * (around - 4.0 * here[x]);
                    }
                }
            })?;
        if step % 200 == 0 {
            // This runs beside the following steps: only the next overwrite of this buffer waits for it.
            rt.task("draw")
                .once()
                .read(&next, all())
                .effect(&pictures, sequential())
                .host(move |(plate, pictures)| pictures.push((step, draw(plate))))?;
        }
        std::mem::swap(&mut plate, &mut next);
    }

    for (step, picture) in rt.drain(pictures.capture())? {
        println!("after step {step}:\n{picture}");
    }
    Ok(())
}

fn draw(plate: &ReadView<f32, 2>) -> String {
    let shade = |heat: &f32| char::from(b" .:-=+*#%@"[(heat * 9.99) as usize]);
    (0..ROWS).map(|y| plate.row(y).iter().map(shade).chain(['\n']).collect::<String>()).collect()
}
