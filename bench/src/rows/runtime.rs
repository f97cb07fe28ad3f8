//! The runtime: the cost of waiting, and of fetching a small result.

use std::{sync::mpsc, thread, time::Duration};

use anabranch::{Error, Runtime, sequential};
use rustix::time::ClockId;

use crate::{
    clock::seconds,
    harness::{Contest, Context, Failure, Load, Outcome},
    peers::{
        pools::rayon_pool,
        program::{Program, TBB_LOOPS},
    },
    row::Row,
};

pub fn rows() -> Vec<Row> {
    // The figures are the bar and the better figure.
    let latency = |name, about, [bar, better]: [f64; 2], batch, prepare: Prepare| {
        let run = move |context: &Context| latency(context, batch, prepare);
        Row::lower(name, "us", about, run).bar(bar).better(better)
    };
    vec![
        latency(
            "runtime/wait-idle",
            "`wait()` with nothing in flight, back to back",
            [0.1, 0.05],
            1000,
            wait_idle,
        ),
        Row::lower(
            "runtime/host-task-wait",
            "us",
            "one empty host task and `wait()`, back to back: the waiting thread may run it",
            host_task_wait,
        )
        .bar(3.0)
        .better(1.0),
        latency(
            "runtime/chain-of-10-wait",
            "ten host tasks in sequence and `wait()`",
            [10.0, 4.0],
            20,
            chain_of_10,
        ),
        latency(
            "runtime/fence-object",
            "a fence of a host object and its `wait()`, back to back",
            [3.0, 1.0],
            20,
            fence_object,
        ),
        latency(
            "runtime/fence-element",
            "a fence of a buffer of one element and its `wait()`, back to back",
            [5.0, 2.0],
            20,
            fence_element,
        ),
        Row::lower(
            "runtime/idle-cpu",
            "%",
            "of a processor, taken by the process while a host task sleeps and `wait()` waits",
            idle_cpu,
        )
        .bar(1.0)
        .better(0.0),
    ]
}

type Operation<'rt> = Box<dyn FnMut() -> Result<(), Error> + 'rt>;
/// Creates an operation and the objects that it uses.
type Prepare = fn(&Runtime) -> Result<Operation<'_>, Error>;

fn wait_idle(runtime: &Runtime) -> Result<Operation<'_>, Error> {
    Ok(Box::new(|| runtime.wait()))
}

fn one_host_task(runtime: &Runtime) -> Result<Operation<'_>, Error> {
    Ok(Box::new(|| {
        runtime.task("nothing").once().host(|()| {})?;
        runtime.wait()
    }))
}

fn chain_of_10(runtime: &Runtime) -> Result<Operation<'_>, Error> {
    let object = runtime.host_object(());
    Ok(Box::new(move || {
        for _ in 0..10 {
            runtime.task("nothing").once().effect(&object, sequential()).host(|_| {})?;
        }
        runtime.wait()
    }))
}

fn fence_object(runtime: &Runtime) -> Result<Operation<'_>, Error> {
    let object = runtime.host_object(1u64);
    Ok(Box::new(move || runtime.fence(&object)?.wait().map(|value| assert_eq!(value, 1))))
}

fn fence_element(runtime: &Runtime) -> Result<Operation<'_>, Error> {
    let buffer = runtime.buffer_from(&[1.0])?;
    Ok(Box::new(move || runtime.fence(&buffer)?.wait().map(|value| assert_eq!(value.as_slice(), [1.0]))))
}

/// Times an operation, in microseconds.
fn microseconds(load: Load, operation: impl FnMut() -> Result<(), Error>) -> Result<Vec<f64>, Failure> {
    Ok(load.try_time(operation)?.into_iter().map(|ns| ns / 1e3).collect())
}

fn latency(context: &Context, batch: usize, prepare: Prepare) -> Result<Outcome, Failure> {
    let load = Load::back_to_back(context.pick(50, 3), batch);
    let runtime = Runtime::builder().threads(context.threads).build()?;
    let mut operation = prepare(&runtime)?;
    Contest::ours(|| microseconds(load, &mut operation)).run(context, context.pick(20, 1))
}

fn host_task_wait(context: &Context) -> Result<Outcome, Failure> {
    let load = Load::back_to_back(context.pick(50, 3), 20);
    let runtime = Runtime::builder().threads(context.threads).build()?;
    let rayon = rayon_pool(context.threads)?;
    let mut operation = one_host_task(&runtime)?;
    Contest::ours(|| microseconds(load, &mut operation))
        .peer("rayon install", || microseconds(load, || rayon.install(|| Ok(()))))
        .peer("rayon in_place_scope", || {
            microseconds(load, || {
                rayon.in_place_scope(|scope| scope.spawn(|_| ()));
                Ok(())
            })
        })
        .peer("rayon scope, inside its pool", || {
            rayon.install(|| {
                microseconds(load, || {
                    rayon::scope(|scope| scope.spawn(|_| ()));
                    Ok(())
                })
            })
        })
        .peer_if(TBB_LOOPS.start(), "TBB run_and_wait", |program: &mut Program| {
            let times = program.time("run-and-wait", 1, context.threads, load)?;
            Ok(times.into_iter().map(|ns| ns / 1e3).collect())
        })
        .run(context, context.pick(20, 1))
}

/// Processor time of the whole process divided by elapsed time, in percent.
fn idle_cpu(context: &Context) -> Result<Outcome, Failure> {
    let nap = Duration::from_millis(context.pick(500, 50));
    let runtime = Runtime::builder().threads(context.threads).build()?;
    Contest::ours(|| {
        let (started, start) = mpsc::channel();
        runtime.task("sleep").once().host(move |()| {
            // The receiver is gone if this task began late.
            let _ = started.send(());
            thread::sleep(nap);
        })?;
        // Wait until a thread of the runtime runs the task; otherwise this thread would run it in `wait`.
        let _ = start.recv_timeout(nap);
        let before = [ClockId::ProcessCPUTime, ClockId::Monotonic].map(seconds);
        runtime.wait()?;
        let after = [ClockId::ProcessCPUTime, ClockId::Monotonic].map(seconds);
        Ok(vec![100.0 * (after[0] - before[0]) / (after[1] - before[1])])
    })
    .run(context, context.pick(6, 1))
}
