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
    let plate = rt.buffer_from(&initial)?.named("plate");
    let next = rt.buffer::<f32, 2>([ROWS, COLS]).named("next");
    let pictures = rt.host_object(Vec::new());

    // A step there and a step back. They are recorded once and replayed, because each is too short to be
    // worth a submission.
    let two_steps = rt.record("two steps", |body| {
        for (from, to) in [(&plate, &next), (&next, &plate)] {
            body.task("spread")
                .over([ROWS, COLS])
                .read(from, neighborhood([1, 0]))
                .write(to, one_to_one())
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
        }
        Ok(())
    })?;
    for step in (200..=1000).step_by(200) {
        two_steps.replay(100)?;
        // The runtime derives that the picture comes after these steps and before the next ones. The program
        // waits for neither.
        rt.task("draw")
            .once()
            .read(&plate, all())
            .effect(&pictures, sequential())
            .host(move |(plate, pictures)| pictures.push((step, draw(plate))))?;
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
