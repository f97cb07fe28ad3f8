//! Batches: many similar host tasks that are declared and submitted at once.
//!
//! The points of an index space are the tasks. The accesses are declared once, for all of them, and the graph
//! gets the tasks under one lock, as it gets the pieces of a kernel. They share one function. With several
//! nodes the points of a node are one task.

use super::{
    NewTask, TaskBuilder,
    host_result::{HostError, HostResult},
    index_space::{Each, IndexSpace},
};
use crate::{
    data::pattern::Pattern,
    error::{Cause, Error, Failure},
    execute::{Body, Compute, Core, GroupHandle, Place, TaskHandle},
    submit::{
        access::list::AccessList,
        launch::{
            body::call_host,
            declaration::{Declaration, Piece},
            launch, launch_pieces,
        },
    },
};
use anabranch_graph::command::Work;
use anabranch_grid::{Chunk, GridBox};
use smallvec::smallvec;
use std::{borrow::Cow, ops::Range, panic::Location, sync::Arc};

/// A batch of tasks that has only a name so far: see [`Runtime::tasks`](crate::Runtime::tasks).
#[derive(Clone, Debug)]
#[must_use = "a batch is submitted by `host`"]
pub struct NewTasks<'rt>(NewTask<'rt>);

impl<'rt> NewTasks<'rt> {
    pub(crate) fn new(
        core: &'rt Arc<Core>,
        group: Option<&'rt GroupHandle>,
        name: impl Into<Cow<'static, str>>,
        location: &'static Location<'static>,
    ) -> Self {
        Self(NewTask::new(core, group, name, location))
    }

    /// Sets the index space: the batch has a host task for each of its points. A mapper gets each point as a
    /// chunk, and once the whole index space, for which it gives all that the points access together.
    pub fn each<const K: usize>(self, space: impl IndexSpace<K>) -> TaskBuilder<'rt, K, Each, ()> {
        self.0.begin(space.index_space())
    }
}

impl<const K: usize, L: AccessList<K>> TaskBuilder<'_, K, Each, L> {
    /// Submits the batch: a host task for each point of the index space, in row-major order. `function` is
    /// called once for each point, with the point, when all tasks that this one depends on are done, on a
    /// host lane, where it may block. It may return a `Result`. An error or a panic fails the task of that
    /// point alone, and those that need its results.
    ///
    /// A thread that waits for the tasks may run some of them instead, on its own stack: see
    /// [`Runtime::wait`](crate::Runtime::wait) and [`blocking`](Self::blocking).
    ///
    /// The accesses are declared once, for all points, as those of a kernel whose chunks are the points: two
    /// points may not write one element, and none may read what another one writes. Sequential effects order
    /// the tasks as if they were submitted one after the other. The handle is one for all of them.
    ///
    /// Blocks while the [limit of tasks in flight](crate::Builder::max_in_flight) is reached. The batch is
    /// submitted as a whole then, so it may exceed the limit.
    ///
    /// With [several nodes](crate::guide::nodes) each node runs its points one after the other, as one task:
    /// the first error ends it.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let (names, lengths) = (["Po", "Rhine", "Danube"], rt.buffer::<usize, 1>([3]));
    /// let longest = rt.host_object(0);
    /// rt.tasks("measure").each([3]).write(&lengths, one_to_one()).effect(&longest, exclusive()).host(
    ///     move |[i], (lengths, longest)| {
    ///         lengths.set([i], names[i].len());
    ///         *longest = names[i].len().max(*longest);
    ///     },
    /// )?;
    /// assert_eq!(rt.fence(&lengths)?.wait()?.as_slice(), [2, 5, 6]);
    /// assert_eq!(rt.fence(&longest)?.wait()?, 6);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// If the declaration is wrong: see [`Error`]. Only kernels have reductions. Nothing is submitted then.
    pub fn host<F, R>(self, function: F) -> Result<TaskHandle, Error>
    where
        F: for<'v> Fn([usize; K], L::Views<'v>) -> R + Send + Sync + 'static,
        R: HostResult,
    {
        self.check_has_no_reduction()?;
        self.submit_batch(move |point, views| function(point, views).into_result())
    }

    /// Submits the batch with a function whose error is one of a host function already.
    pub(in crate::submit) fn submit_batch<F>(mut self, function: F) -> Result<TaskHandle, Error>
    where
        F: for<'v> Fn([usize; K], L::Views<'v>) -> Result<(), HostError> + Send + Sync + 'static,
    {
        let work = Work::HostChunks { space: self.space.cast() };
        let part = self.part(|| work);
        let several_nodes = part.is_some();
        let points: Arc<[Chunk<K>]> = match part {
            Some(part) => part.iter().flat_map(|part| self.points_of(part.range)).collect(),
            None => self.points_of(self.space).collect(),
        };
        // Recorded graphs show one task.
        self.hints.pieces = 1;
        let mut declaration =
            Declaration::new(self.core, self.group, &self.label, Chunk::whole(self.space), &points);
        if !several_nodes {
            declaration.pieces = pieces(points.len());
        }
        self.hints.record(&mut declaration, work);
        let bound = self.accesses.declare(&mut declaration).map_err(|error| self.core.refuse(error))?;
        declaration.check_order().map_err(|error| self.core.refuse(error))?;
        let place = if self.hints.blocking { Place::Blocking } else { Place::Host };
        let batch = |bound: Result<_, Box<Error>>| {
            let bound = bound.map_err(|error| Box::new(Cause::from(error)));
            Arc::new(Batch::<K, L, F> { bound, points: Arc::clone(&points), function })
        };
        if several_nodes {
            let body = |bound| PointsBody { batch: Some(batch(bound)), points: 0..points.len() };
            let node = launch::<K, L, _>(&mut declaration, bound, place, false, body)?;
            return Ok(TaskHandle::new(smallvec![node]));
        }
        let nodes = launch_pieces::<K, L, _, _>(&mut declaration, bound, place, |bound| {
            let batch = batch(bound);
            move |points| PointsBody { batch: Some(Arc::clone(&batch)), points }
        })?;
        Ok(TaskHandle::new(nodes))
    }

    /// The points of a box, as chunks. The iterator says how many there are, so that `collect` allocates
    /// once.
    pub(in crate::submit) fn points_of(
        &self,
        range: GridBox<K>,
    ) -> impl Iterator<Item = Chunk<K>> + use<K, L> {
        let (global, mut points) = (self.space, range.points());
        (0..range.len()).map(move |_| {
            let point = points.next().expect("a box has as many points as it says");
            Chunk { range: GridBox::new(point, point.0.map(|at| at + 1)), global }
        })
    }
}

/// A piece for each point. A batch without points is one piece that does nothing, so that its handle has a
/// node.
pub(in crate::submit) fn pieces(points: usize) -> Vec<Piece> {
    match points {
        0 => vec![Piece::new(0..0)],
        _ => (0..points).map(|point| Piece::new(point..point + 1)).collect(),
    }
}

/// What the tasks of a batch share.
struct Batch<const K: usize, L: AccessList<K>, F> {
    bound: Result<L::Bound, Box<Cause>>,
    points: Arc<[Chunk<K>]>,
    function: F,
}

/// Some points of a batch, until they are run. The last body drops the batch.
struct PointsBody<const K: usize, L: AccessList<K>, F> {
    batch: Option<Arc<Batch<K, L, F>>>,
    points: Range<usize>,
}

impl<const K: usize, L, F> Body for PointsBody<K, L, F>
where
    L: AccessList<K>,
    F: for<'v> Fn([usize; K], L::Views<'v>) -> Result<(), HostError> + Send + Sync + 'static,
{
    fn run(&mut self, compute: &Compute) -> Result<(), Cause> {
        let batch = self.batch.take().expect("a task is run once");
        let bound = batch.bound.as_ref().map_err(|cause| Cause::clone(cause))?;
        let pattern = compute.is_checked().then(Pattern::draw);
        self.points.clone().try_for_each(|at| {
            let point = batch.points[at].range;
            // SAFETY: memory is attached if `bound` is not an error; the executor calls this once, when the
            // graph allows this task.
            unsafe {
                call_host::<K, L, _>(bound, at, pattern.as_ref(), Some(point), |views| {
                    (batch.function)(point.min().0, views)
                })
            }
        })
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.batch = None;
    }
}
