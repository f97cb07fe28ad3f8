//! Empty tasks, submitted to a runtime: their cost is the runtime's own.

use anabranch::{Buffer, Error, HostObject, Runtime, Sequence, prelude::*};

/// The number of rows and of columns of the wavefront, which is nearly 100,000 tasks. The other shapes have
/// as many.
pub const SIDE: usize = 316;

/// The tasks that a task depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// No other task.
    Independent,
    /// The previous task.
    Chain,
    /// Task (i, j), which is task `i * SIDE + j`, changes element j and reads element j - 1.
    Wavefront,
    /// As [`Wavefront`](Self::Wavefront), but expressed by sequential effects on a host object for each row
    /// and each column, like the addresses of OpenMP's `depend`.
    WavefrontEffects,
    /// No other task, but never two run at the same time.
    Exclusive,
}

impl Shape {
    /// Whether a batch of host tasks has this shape.
    pub fn is_batch(self) -> bool {
        matches!(self, Self::Independent | Self::Chain | Self::Exclusive)
    }

    /// The name of the shape in the requests to the peers' programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Independent | Self::Exclusive => "tasks-independent",
            Self::Chain => "tasks-chain",
            Self::Wavefront | Self::WavefrontEffects => "tasks-wavefront",
        }
    }
}

/// The threads that run tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Host threads, where tasks may block.
    Host,
    /// Compute threads; a task is one chunk.
    Kernel,
}

/// A runtime, with the buffers and host objects that tasks of every shape access.
pub struct EmptyTasks {
    runtime: Runtime,
    object: HostObject<()>,
    elements: Buffer<u8, 1>,
    rows: Vec<HostObject<()>>,
    columns: Vec<HostObject<()>>,
}

impl EmptyTasks {
    /// Starts a runtime with this number of threads.
    ///
    /// # Errors
    /// If the runtime cannot be built.
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
    /// If the runtime refuses a task.
    pub fn run(&self, shape: Shape, kind: Kind, tasks: usize) -> Result<(), Error> {
        (0..tasks).try_for_each(|number| self.submit(shape, kind, number, || ()))?;
        self.runtime.wait()
    }

    /// Submits `tasks` host tasks, in batches of [`SIDE`], and waits for them.
    ///
    /// # Errors
    /// If the runtime refuses a batch.
    pub fn run_batches(&self, shape: Shape, tasks: usize) -> Result<(), Error> {
        (0..tasks / SIDE).try_for_each(|_| self.submit_batch(shape, || ()))?;
        self.runtime.wait()
    }

    /// Submits a batch of [`SIDE`] host tasks, which call `act` and do nothing else.
    ///
    /// # Errors
    /// If the runtime refuses it.
    ///
    /// # Panics
    /// If [no batch](Shape::is_batch) has this shape.
    pub fn submit_batch(&self, shape: Shape, act: impl Fn() + Send + Sync + 'static) -> Result<(), Error> {
        let tasks = self.runtime.tasks("nothing").each([SIDE]);
        match shape {
            Shape::Independent => tasks.host(move |_, ()| act()),
            Shape::Chain => tasks.effect(&self.object, sequential()).host(move |_, _| act()),
            Shape::Exclusive => tasks.effect(&self.object, exclusive()).host(move |_, _| act()),
            other => panic!("{other:?} is no batch"),
        }
        .map(|_| ())
    }

    /// Records kernels that call `act` and do nothing else: of a chain one, of a wavefront a row. Returns the
    /// sequence and its length. Its replays, one after the other, are the tasks of the shape.
    ///
    /// # Errors
    /// If the runtime refuses a task.
    ///
    /// # Panics
    /// If the shape is another one.
    pub fn record(
        &self,
        shape: Shape,
        act: impl Fn() + Clone + Send + Sync + 'static,
    ) -> Result<(Sequence, usize), Error> {
        let length = match shape {
            Shape::Chain => 1,
            Shape::Wavefront => SIDE,
            other => panic!("{other:?} is not replayed"),
        };
        let element = |j| fixed(GridBox::new(j, j + 1));
        let sequence = self.runtime.record("nothing", |body| {
            (0..length).try_for_each(|j| {
                let (u, act) = (&self.elements, act.clone());
                let task = body.task("nothing").over([1]).chunks(1).update(u, element(j));
                if j == 0 {
                    return task.kernel(move |_, _| act());
                }
                task.read(u, element(j - 1)).kernel(move |_, _| act())
            })
        })?;
        Ok((sequence, length))
    }

    /// Submits task `number`, which calls `act` and does nothing else.
    ///
    /// # Errors
    /// If the runtime refuses it.
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
            // Kernels have no effects. An update of one element orders them as strictly.
            (Kind::Kernel, _) => task.over([1]).chunks(1).update(u, element(0)).kernel(move |_, _| act()),
        }
        .map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    #[test]
    fn every_task_runs_in_every_shape_and_kind() {
        let _deadline = testing::deadline();
        let tasks = EmptyTasks::new(2).unwrap();
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
                    tasks.submit(shape, kind, number, act).unwrap();
                }
                tasks.run(shape, kind, 1).unwrap();
                assert_eq!(count.load(Ordering::Relaxed), 3 * SIDE, "{kind:?}, {shape:?}");
            }
        }
    }

    #[test]
    fn every_task_of_a_batch_runs() {
        let _deadline = testing::deadline();
        let tasks = EmptyTasks::new(2).unwrap();
        for shape in [Shape::Independent, Shape::Chain, Shape::Exclusive] {
            let count = Arc::new(AtomicUsize::new(0));
            for _ in 0..3 {
                let count = Arc::clone(&count);
                let act = move || {
                    count.fetch_add(1, Ordering::Relaxed);
                };
                tasks.submit_batch(shape, act).unwrap();
            }
            tasks.run_batches(shape, SIDE).unwrap();
            assert_eq!(count.load(Ordering::Relaxed), 3 * SIDE, "{shape:?}");
        }
    }

    #[test]
    fn every_task_of_a_replay_runs() {
        let _deadline = testing::deadline();
        let tasks = EmptyTasks::new(2).unwrap();
        for shape in [Shape::Chain, Shape::Wavefront] {
            let count = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&count);
            let act = move || {
                counted.fetch_add(1, Ordering::Relaxed);
            };
            let (sequence, length) = tasks.record(shape, act).unwrap();
            sequence.replay(3).unwrap().wait().unwrap();
            assert_eq!(count.load(Ordering::Relaxed), 3 * length, "{shape:?}");
        }
    }
}
