//! Parallel regions: the cost of opening one and of waiting for its threads at the end.

use std::{hint::black_box, time::Duration};

use anabranch_par::{IntoParallel, ThreadPool};
use rayon::prelude::*;

use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    peers::{
        pools::rayon_pool,
        program::{OPENMP, Program, TBB},
    },
    row::{Row, times},
};

pub fn rows() -> Vec<Row> {
    let hot = |context: &Context| {
        let load = Load { samples: context.pick(20, 3), batch: 200, pause: Duration::ZERO };
        empty(context, load)
    };
    let cold = |context: &Context| {
        let load = Load { samples: context.pick(50, 3), batch: 1, pause: Duration::from_micros(300) };
        empty(context, load)
    };
    vec![
        Row::lower("region/empty-hot", "ns", "an empty region from outside the pool, back to back", hot)
            .median()
            .bar(1000.0)
            .bar(times(1.0, "TBB"))
            .better(100.0),
        Row::lower("region/empty-cold", "ns", "an empty region, after 300 µs of other work", cold).median(),
    ]
}

/// Measures a region with as many empty items as threads, opened by a thread outside the pool.
fn empty(context: &Context, load: Load) -> Result<Outcome, Failure> {
    let threads = context.threads;
    let ours = ThreadPool::new(threads)?;
    let rayon = rayon_pool(threads)?;
    let empty_region = |program: &mut Program| program.time("empty-region", threads, threads, load);
    Contest::ours(|| {
        Ok(load.time(|| {
            (0..threads).par().on(&ours).for_each(|i| {
                black_box(i);
            })
        }))
    })
    .peer("rayon", || {
        Ok(load.time(|| {
            rayon.install(|| {
                (0..threads).into_par_iter().for_each(|i| {
                    black_box(i);
                })
            })
        }))
    })
    .peer_if(TBB.start(), TBB.name, empty_region)
    .peer_if(OPENMP.start(), OPENMP.name, empty_region)
    .run(context, context.pick(20, 1))
}
