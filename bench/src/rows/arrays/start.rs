//! What the first use costs. `latency/precompile`, the time that Julia's compiler takes for the package, has
//! no counterpart: programs in Rust are compiled before they run.

use std::time::Instant;

use anabranch_array::Arrays;

use super::bed::runtime;
use crate::{
    harness::{Contest, Context, Failure, Outcome},
    row::Row,
};

pub fn rows() -> Vec<Row> {
    vec![
        Row::lower(
            "latency/import",
            "us",
            "opening the GPU, if there is one, and starting a runtime",
            |context| measure(context, false),
        ),
        Row::lower(
            "latency/ttfp",
            "us",
            "the same, and the first array and the first kernel on it, until its result is there",
            |context| measure(context, true),
        ),
    ]
}

fn measure(context: &Context, computes: bool) -> Result<Outcome, Failure> {
    let samples = context.pick(5, 1);
    Contest::ours(|| {
        let sample = |_| {
            let begin = Instant::now();
            let runtime = runtime(context)?;
            if computes {
                let a = Arrays::new(&runtime).filled([1000], 1.0_f32)?;
                a.map(|x| x + 1.0)?.get([999])?;
            }
            Ok(begin.elapsed().as_secs_f64() * 1e6)
        };
        (0..samples).map(sample).collect()
    })
    .run(context, context.pick(5, 1))
}
