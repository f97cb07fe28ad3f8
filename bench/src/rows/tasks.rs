//! Empty tasks through the whole runtime: what remains is what the runtime costs.

use anabranch::{Buffer, Error, HostObject, Runtime, prelude::*};

use crate::{
    harness::{Contest, Context, Failure, Load, Outcome},
    memory,
    peers::program::{OPENMP, Program, Source, TBB},
    row::Row,
};

/// The sides of the wavefront: 100,000 tasks, nearly. The other shapes have as many.
const SIDE: usize = 316;

pub fn rows() -> Vec<Row> {
    use {Kind::*, Shape::*};
    let row = |name, about, shape, kind| {
        let run = move |context: &Context| measure(context, &[TBB, OPENMP], shape, kind);
        let (bar, better, taskflow, starpu) = match shape {
            Independent | Exclusive => (600.0, 300.0, 212.0, 2094.0),
            Chain => (300.0, 200.0, 100.0, 4640.0),
            Wavefront | WavefrontEffects => (500.0, 250.0, 115.0, 4577.0),
        };
        let row = Row::lower(name, "ns", about, run).median().bar(bar).better(better);
        row.quoted("Taskflow 3.9", taskflow).quoted("StarPU", starpu)
    };
    vec![
        row("runtime/independent", "per empty host task, of 100,000", Independent, Host),
        row("runtime/independent-kernels", "the same, kernels of one chunk", Independent, Kernel),
        row("runtime/chain", "host tasks chained by a sequential effect", Chain, Host),
        row("runtime/chain-kernels", "kernels chained by one element", Chain, Kernel),
        row("runtime/wavefront", "host task (i, j) changes element j, reads j - 1", Wavefront, Host),
        row("runtime/wavefront-effects", "host task (i, j) touches objects i and j", WavefrontEffects, Host),
        row(
            "runtime/wavefront-kernels",
            "the wavefront by elements, kernels of one chunk",
            Wavefront,
            Kernel,
        ),
        Row::lower(
            "runtime/memory-million",
            "MiB",
            "added by 1,000,000 tasks without a wait",
            memory_million,
        )
        .median()
        .bar(64.0)
        .better(16.0),
    ]
}

/// On what tasks depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// On none.
    Independent,
    /// On the one before.
    Chain,
    /// Task (i, j), which is task `i * SIDE + j`, changes element j and reads element j - 1.
    Wavefront,
    /// The same order by sequential effects on a host object for each row and each column, as by the addresses of OpenMP's
    /// `depend`.
    WavefrontEffects,
    /// On none, but never two at a time.
    Exclusive,
}

impl Shape {
    /// What the peers' programs call it.
    fn name(self) -> &'static str {
        match self {
            Self::Independent | Self::Exclusive => "tasks-independent",
            Self::Chain => "tasks-chain",
            Self::Wavefront | Self::WavefrontEffects => "tasks-wavefront",
        }
    }
}

/// Where tasks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// On threads where they may block.
    Host,
    /// On the compute threads, in one chunk.
    Kernel,
}

/// A runtime and what tasks touch.
pub struct Stage {
    runtime: Runtime,
    object: HostObject<()>,
    elements: Buffer<u8, 1>,
    rows: Vec<HostObject<()>>,
    columns: Vec<HostObject<()>>,
}

impl Stage {
    /// A runtime with so many threads.
    ///
    /// # Errors
    /// If it cannot be had.
    pub fn new(threads: usize) -> Result<Self, Error> {
        let runtime = Runtime::builder().threads(threads).build()?;
        let object = runtime.host_object(());
        let elements = runtime.buffer_from(&[0; SIDE])?;
        let [rows, columns] = [0, 1].map(|_| (0..SIDE).map(|_| runtime.host_object(())).collect());
        Ok(Self { runtime, object, elements, rows, columns })
    }

    /// Submits `tasks` tasks and waits for them.
    ///
    /// # Errors
    /// If the runtime refuses one.
    pub fn run(&self, shape: Shape, kind: Kind, tasks: usize) -> Result<(), Error> {
        (0..tasks).try_for_each(|number| self.submit(shape, kind, number, || ()))?;
        self.runtime.wait()
    }

    /// Submits a task that does nothing but `act`.
    pub fn submit(
        &self,
        shape: Shape,
        kind: Kind,
        number: usize,
        act: impl Fn() + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let task = self.runtime.task("nothing");
        let (u, object, j) = (&self.elements, &self.object, number % SIDE);
        let element = |j| fixed(GridBox::new(j, j + 1));
        match (kind, shape) {
            (Kind::Host, Shape::Independent) => task.once().host(move |()| act()),
            (Kind::Host, Shape::Chain) => task.once().effect(object, sequential()).host(move |_| act()),
            (Kind::Host, Shape::Exclusive) => task.once().effect(object, exclusive()).host(move |_| act()),
            (Kind::Host, Shape::Wavefront) if j == 0 => {
                task.once().update(u, element(0)).host(move |_| act())
            }
            (Kind::Host, Shape::Wavefront) => {
                task.once().update(u, element(j)).read(u, element(j - 1)).host(move |_| act())
            }
            (Kind::Host, Shape::WavefrontEffects) => {
                let (row, column) = (&self.rows[number / SIDE % SIDE], &self.columns[j]);
                task.once().effect(row, sequential()).effect(column, sequential()).host(move |_| act())
            }
            (Kind::Kernel, Shape::Independent) => task.over([1]).chunks(1).kernel(move |_, ()| act()),
            (Kind::Kernel, Shape::Wavefront) if j > 0 => {
                let task = task.over([1]).chunks(1).update(u, element(j)).read(u, element(j - 1));
                task.kernel(move |_, _| act())
            }
            // Kernels have no effects; what an element orders is as strict.
            (Kind::Kernel, _) => task.over([1]).chunks(1).update(u, element(0)).kernel(move |_, _| act()),
        }
        .map(|_| ())
    }
}

/// Nanoseconds per task, and what these peers take for tasks of the same shape.
pub fn measure(context: &Context, peers: &[Source], shape: Shape, kind: Kind) -> Result<Outcome, Failure> {
    let tasks = context.pick(SIDE * SIDE, 10 * SIDE);
    let (threads, load) = (context.threads, Load::back_to_back(context.pick(3, 1), 1));
    let per_task = |times: Vec<f64>| times.into_iter().map(|ns| ns / tasks as f64).collect();
    let stage = Stage::new(threads)?;
    let mut contest = Contest::ours(|| Ok(per_task(load.try_time(|| stage.run(shape, kind, tasks))?)));
    for peer in peers {
        contest = contest.peer_if(peer.start(), peer.name, |program: &mut Program| {
            Ok(per_task(program.time(shape.name(), tasks, threads, load)?))
        });
    }
    contest.run(context.pick(10, 1))
}

fn memory_million(context: &Context) -> Result<Outcome, Failure> {
    let tasks = context.pick(1_000_000, 10_000);
    Contest::ours(|| Ok(vec![memory::added_by(tasks, context.threads)? / f64::from(1 << 20)]))
        .run(context.pick(2, 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    #[test]
    fn every_task_is_run_whatever_its_shape_and_kind() {
        let stage = Stage::new(2).unwrap();
        for kind in [Kind::Host, Kind::Kernel] {
            for shape in [
                Shape::Independent,
                Shape::Chain,
                Shape::Wavefront,
                Shape::WavefrontEffects,
                Shape::Exclusive,
            ] {
                let count = Arc::new(AtomicUsize::new(0));
                for number in 0..3 * SIDE {
                    let count = Arc::clone(&count);
                    let act = move || {
                        count.fetch_add(1, Ordering::Relaxed);
                    };
                    stage.submit(shape, kind, number, act).unwrap();
                }
                stage.run(shape, kind, 1).unwrap();
                assert_eq!(count.load(Ordering::Relaxed), 3 * SIDE, "{kind:?}, {shape:?}");
            }
        }
    }
}
