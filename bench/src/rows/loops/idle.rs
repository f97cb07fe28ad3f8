//! The cost of a pool without work.

use std::{hint::black_box, thread, time::Duration};

use anabranch_par::prelude::*;
use rustix::time::ClockId;

use crate::{
    clock::seconds,
    harness::{Contest, Context, Failure, Outcome},
    row::Row,
};

/// The number of threads of the pool.
const THREADS: usize = 8;
/// How long threads may look for more work before they sleep.
const REST: Duration = Duration::from_millis(5);

pub fn rows() -> Vec<Row> {
    vec![
        Row::lower(
            "loops/idle-cpu",
            "%",
            "of a processor, taken by the idle threads of a pool of eight, after they fell asleep",
            idle_cpu,
        )
        .bar(0.0),
    ]
}

/// Processor time of all threads but this one divided by elapsed time, in percent. The figure is rounded to
/// two decimal places, because reading the clocks takes time as well.
fn idle_cpu(context: &Context) -> Result<Outcome, Failure> {
    let nap = Duration::from_millis(context.pick(500, 50));
    let pool = ThreadPool::new(THREADS)?;
    Contest::ours(|| {
        // In this schedule the loop is shared, also if it is short.
        let wakes = (0..THREADS).par().on(&pool).schedule(Schedule::Static(Split::RoundRobin));
        wakes.for_each(|i| {
            black_box(i);
        });
        thread::sleep(REST);
        let before = [ClockId::ProcessCPUTime, ClockId::ThreadCPUTime, ClockId::Monotonic].map(seconds);
        thread::sleep(nap);
        let after = [ClockId::ProcessCPUTime, ClockId::ThreadCPUTime, ClockId::Monotonic].map(seconds);
        let [process, this, clock] = std::array::from_fn(|i| after[i] - before[i]);
        let percent = 100.0 * (process - this).max(0.0) / clock;
        Ok(vec![(percent * 100.0).round() / 100.0])
    })
    .run(context, context.pick(6, 1))
}
