//! Sorts a million numbers.

use anabranch_par::ThreadPool;
use rayon::prelude::*;

use super::{
    ours,
    timing::{MS, scaled},
    work::random,
};
use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    peers::{
        pools::rayon_pool,
        program::{Program, TBB_LOOPS},
    },
    row::{Row, times},
};

pub fn rows() -> Vec<Row> {
    vec![
        Row::lower(
            "loops/sort-1e6",
            "ms",
            "sorting 1,000,000 `u64` in no particular order, without stability",
            sort,
        )
        .bar(times(1.0, "rayon par_sort_unstable")),
    ]
}

fn sort(context: &Context) -> Result<Outcome, Failure> {
    let data: Vec<u64> = (0..context.pick(1_000_000, 10_000)).map(random).collect();
    let load = Load::back_to_back(2, 1);
    let threads = context.threads;
    let (pool, rayon) = (ThreadPool::new(threads)?, rayon_pool(threads)?);
    // Each call sorts a new copy. All copies are made before the first call is timed.
    let ms = |sort: &(dyn Fn(&mut [u64]) + Sync)| {
        let mut copies = vec![data.clone(); (load.samples + 1) * load.batch].into_iter();
        let times = load.time(|| sort(&mut copies.next().expect("there is a copy for each call")));
        Ok(scaled(times, MS))
    };
    Contest::ours(|| ms(&|data| ours::sort(&pool, data)))
        .peer("rayon par_sort_unstable", || rayon.install(|| ms(&|data| data.par_sort_unstable())))
        .peer("rayon par_sort", || rayon.install(|| ms(&|data| data.par_sort())))
        .peer_if(TBB_LOOPS.start(), TBB_LOOPS.name, |program: &mut Program| {
            Ok(scaled(program.time("sort", data.len(), threads, load)?, MS))
        })
        .run(context, context.pick(15, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_side_sorts() {
        let _deadline = testing::deadline();
        let pool = ThreadPool::new(3).unwrap();
        for n in [0, 1, 10, 10_000] {
            let mut data: Vec<u64> = (0..n).map(random).collect();
            let mut expected = data.clone();
            expected.sort();
            ours::sort(&pool, &mut data);
            assert_eq!(data, expected, "{n} numbers");
        }
    }
}
