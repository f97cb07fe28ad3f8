//! The runtime: what a small task costs, and what waiting costs.

use std::{sync::mpsc, thread, time::Duration};

use anabranch::Runtime;
use rustix::time::{ClockId, clock_gettime};

use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    row::Row,
};

pub fn rows() -> Vec<Row> {
    vec![
        Row::lower("runtime/host-task-wait", "us", "one empty host task, then wait()", host_task_wait)
            .median()
            .bar(10.0)
            .better(1.0),
        Row::lower(
            "runtime/idle-cpu",
            "%",
            "of a processor, while a host task sleeps and wait() waits",
            idle_cpu,
        )
        .median()
        .bar(1.0)
        .better(0.0),
    ]
}

fn host_task_wait(context: &Context) -> Result<Outcome, Failure> {
    let load = Load { samples: context.pick(50, 3), batch: 20, pause: Duration::ZERO };
    let runtime = Runtime::builder().threads(context.threads).build()?;
    let rayon = rayon::ThreadPoolBuilder::new().num_threads(context.threads).build()?;
    let microseconds = |times: Vec<f64>| Ok(times.into_iter().map(|ns| ns / 1e3).collect());
    Contest::ours(|| {
        let mut result = Ok(());
        let times = load.time(|| {
            let done = runtime.task("nothing").once().host(|()| {}).and_then(|_| runtime.wait());
            result = std::mem::replace(&mut result, Ok(())).and(done);
        });
        result?;
        microseconds(times)
    })
    .peer("rayon install", || microseconds(load.time(|| rayon.install(|| {}))))
    .run(context.pick(20, 1))
}

/// Processor time of the whole process over the time of the clock, in percent.
fn idle_cpu(context: &Context) -> Result<Outcome, Failure> {
    let nap = Duration::from_millis(context.pick(500, 50));
    let runtime = Runtime::builder().threads(context.threads).build()?;
    Contest::ours(|| {
        let (started, start) = mpsc::channel();
        runtime.task("sleep").once().host(move |()| {
            // Nobody listens any more if this began late.
            let _ = started.send(());
            thread::sleep(nap);
        })?;
        // So that the task is on a thread of the runtime's, and not on this one, which is to wait.
        let _ = start.recv_timeout(nap);
        let before = [ClockId::ProcessCPUTime, ClockId::Monotonic].map(seconds);
        runtime.wait()?;
        let after = [ClockId::ProcessCPUTime, ClockId::Monotonic].map(seconds);
        Ok(vec![100.0 * (after[0] - before[0]) / (after[1] - before[1])])
    })
    .run(context.pick(6, 1))
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
