//! Host tasks of a sequence: one that is called once, one with a part for each node, and a batch.

use super::{
    builder::SequenceTask,
    recorder::Recorder,
    template::{Submit, Template},
    units::{Calls, HostUnits, Units},
};
use crate::{
    error::Error,
    label::Label,
    submit::{
        access::list::AccessList,
        launch::{body::Chunks, declaration::Declaration},
        task::{
            TaskBuilder,
            batch::{NewTasks, pieces},
            host_result::{HostError, HostResult},
            index_space::{Collective, Each, IndexSpace, Once, Over},
            tile::Tile,
        },
    },
};
use anabranch_graph::command::Work;
use anabranch_grid::Chunk;
use std::{cell::RefCell, ops::ControlFlow, sync::Arc};

/// A batch of a [sequence](super::Sequence) that has only a name so far: see
/// [`SequenceBody::tasks`](super::SequenceBody::tasks).
#[derive(Debug)]
#[must_use = "a batch is recorded by `host`"]
pub struct NewSequenceTasks<'r> {
    pub(super) tasks: NewTasks<'r>,
    pub(super) recorder: &'r RefCell<Recorder>,
}

impl<'r> NewSequenceTasks<'r> {
    /// Sets the index space: the batch has a host task for each of its points. See [`NewTasks::each`].
    pub fn each<const K: usize>(self, space: impl IndexSpace<K>) -> SequenceTask<'r, K, Each, ()> {
        SequenceTask { task: self.tasks.each(space), recorder: self.recorder }
    }
}

impl<L> SequenceTask<'_, 0, Once, L> {
    /// Sets the node that executes the task: see [`TaskBuilder::on_node`](TaskBuilder::<0, Once,
    /// ()>::on_node).
    ///
    /// # Errors
    /// [`Error::TaskSetting`] if there is no such node.
    pub fn on_node(self, node: u16) -> Result<Self, Error> {
        let Self { task, recorder } = self;
        Ok(Self { task: task.on_node(node)?, recorder })
    }

    /// Records the task. In each replay `function` is called once, with the number of the replay, from 0, and
    /// the views. It may return a `Result`. An error or a panic fails the task, and so the
    /// [replay](super::Sequence::replay). On the host of one node it runs on a thread that runs kernels, so
    /// one that blocks is declared as [`blocking`](Self::blocking).
    ///
    /// # Errors
    /// If the declaration is wrong: see [`Error`].
    pub fn host<F, R>(mut self, function: F) -> Result<(), Error>
    where
        L: AccessList<0> + Clone + Send + Sync,
        F: for<'v> Fn(u64, L::Views<'v>) -> R + Send + Sync + 'static,
        R: HostResult,
    {
        self.task.hints.go_home(&self.task.label).map_err(|error| self.task.core.refuse(error))?;
        self.record_parts(Work::HostOnce, move |tile, views| function(tile.replay(), views).into_result())
    }

    /// Records the task without its place among the others. The replay in which `condition` returns true is
    /// the last one.
    pub(super) fn ends_when<F>(self, condition: F) -> Result<(), Error>
    where
        L: AccessList<0>,
        F: for<'v> Fn(u64, L::Views<'v>) -> bool + Send + Sync + 'static,
    {
        let function = move |tile: &Tile<0>, views: L::Views<'_>| {
            let is_met = condition(tile.replay(), views);
            Ok(if is_met { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        let calls = Calls { chunks: self.whole(), is_batch: false, function };
        self.declare_calls(calls, |recorder, declaration, labels, units| {
            recorder.keep(declaration, labels, units);
            Ok(())
        })
    }
}

impl<L> SequenceTask<'_, 1, Collective, L> {
    /// Records the task. In each replay `function` is called once on every node, with the point of that node:
    /// see [`TaskBuilder::host`](TaskBuilder::<1, Collective, ()>::host). [`Tile::replay`] gives the number
    /// of the replay. An error or a panic fails the task, and so the [replay](super::Sequence::replay). On
    /// the host of one node it runs on a thread that runs kernels, so one that blocks is declared as
    /// [`blocking`](Self::blocking).
    ///
    /// ```
    /// use anabranch::{local_nodes, prelude::*};
    ///
    /// let logs = local_nodes(2).run(|rt| {
    ///     let log = rt.host_object(Vec::new());
    ///     let node = rt.node();
    ///     let notes = rt.record("notes", |body| {
    ///         body.task("note").collective().effect(&log, sequential()).host(move |tile, (log,)| {
    ///             log.push((node, tile.replay()));
    ///         })
    ///     })?;
    ///     notes.replay(2)?;
    ///     rt.fence(&log)?.wait()
    /// });
    /// let logs: Vec<_> = logs.into_iter().map(Result::unwrap).collect();
    /// assert_eq!(logs, [[(0, 0), (0, 1)], [(1, 0), (1, 1)]]);
    /// ```
    ///
    /// # Errors
    /// If the declaration is wrong: see [`Error`].
    pub fn host<F, R>(self, function: F) -> Result<(), Error>
    where
        L: AccessList<1> + Clone + Send + Sync,
        F: for<'v> Fn(&Tile<1>, L::Views<'v>) -> R + Send + Sync + 'static,
        R: HostResult,
    {
        self.record_parts(Work::Collective, move |tile, views| function(tile, views).into_result())
    }
}

impl<const K: usize, L> SequenceTask<'_, K, Over, L> {
    /// Records the task as a host task. In each replay `function` is called once on each node for the part of
    /// the index space that belongs to that node: see [`TaskBuilder::host`](TaskBuilder::<1, Over,
    /// ()>::host). [`Tile::replay`] gives the number of the replay. An error or a panic fails the task, and
    /// so the [replay](super::Sequence::replay). On the host of one node it runs on a thread that runs
    /// kernels, so one that blocks is declared as [`blocking`](Self::blocking).
    ///
    /// # Errors
    /// If the declaration is wrong: see [`Error`]. Only kernels have reductions.
    pub fn host<F, R>(self, function: F) -> Result<(), Error>
    where
        L: AccessList<K> + Clone + Send + Sync,
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) -> R + Send + Sync + 'static,
        R: HostResult,
    {
        self.task.check_has_no_reduction()?;
        self.task.check_is_on_host()?;
        let work = Work::HostChunks { space: self.task.space.cast() };
        self.record_parts(work, move |tile, views| function(tile, views).into_result())
    }
}

impl<const K: usize, L> SequenceTask<'_, K, Each, L> {
    /// Records the batch: a host task for each point of the index space, in row-major order. In each replay
    /// `function` is called once for each point, with the number of the replay, from 0, the point and the
    /// views. It may return a `Result`. On the host of one node it runs on threads that run kernels, so a
    /// batch that blocks is declared as [`blocking`](Self::blocking).
    ///
    /// The accesses are those of [`TaskBuilder::host`](TaskBuilder::<1, Each, ()>::host): declared once, for
    /// all points. Each point begins when what it needs is there, of its replay and of the one before. An
    /// error or a panic fails the task of a point, and so the [replay](super::Sequence::replay).
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let (heights, highest) = (rt.buffer_from(&[3_u64, 5, 1])?, rt.host_object(0));
    /// let grow = rt.record("grow", |body| {
    ///     body.tasks("grow").each([3]).update(&heights, one_to_one()).effect(&highest, sequential()).host(
    ///         |replay, [i], (heights, highest)| {
    ///             heights[[i]] += replay;
    ///             *highest = heights[[i]].max(*highest);
    ///         },
    ///     )
    /// })?;
    /// grow.replay(4)?; // adds 0, 1, 2 and 3
    /// let (heights, highest) = rt.fence((&heights, &highest))?.wait()?;
    /// assert_eq!((heights.as_slice(), highest), (&[9, 11, 7][..], 11));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// If the declaration is wrong: see [`Error`].
    pub fn host<F, R>(self, function: F) -> Result<(), Error>
    where
        L: AccessList<K> + Clone + Send + Sync,
        F: for<'v> Fn(u64, [usize; K], L::Views<'v>) -> R + Send + Sync + 'static,
        R: HostResult,
    {
        let function =
            Arc::new(move |replay, point, views: L::Views<'_>| function(replay, point, views).into_result());
        let (template, by_submission) = (Template::of(&self.task), Arc::clone(&function));
        let submit: Submit = Box::new(move |replay| {
            let (function, number) = (Arc::clone(&by_submission), replay.number);
            template.begin(replay).submit_batch(move |point, views| function(number, point, views))
        });
        let chunks = self.task.points_of(self.task.space).collect();
        let function = move |tile: &Tile<K>, views: L::Views<'_>| {
            function(tile.replay(), tile.range().min().0, views).map(ControlFlow::Continue)
        };
        self.record_calls(Calls { chunks, is_batch: true, function }, submit)
    }
}

impl<const K: usize, S, L: AccessList<K>> SequenceTask<'_, K, S, L> {
    /// Records a host task that is called once on each node for its part.
    fn record_parts<F>(self, work: Work, function: F) -> Result<(), Error>
    where
        S: 'static,
        L: Clone + Send + Sync,
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) -> Result<(), HostError> + Send + Sync + 'static,
    {
        let function = Arc::new(function);
        let (template, by_submission) = (Template::of(&self.task), Arc::clone(&function));
        let submit: Submit = Box::new(move |replay| {
            let (function, number) = (Arc::clone(&by_submission), replay.number);
            template
                .begin(replay)
                .submit_host(work, move |tile, views| function(&tile.in_replay(number), views))
        });
        let function =
            move |tile: &Tile<K>, views: L::Views<'_>| function(tile, views).map(ControlFlow::Continue);
        let calls = Calls { chunks: self.whole(), is_batch: false, function };
        self.record_calls(calls, submit)
    }

    /// The whole index space as a chunk, if it has points.
    fn whole(&self) -> Chunks<K> {
        let space = self.task.space;
        (!space.is_empty()).then(|| Chunk::whole(space)).into_iter().collect()
    }

    /// Records a host task that these calls are.
    fn record_calls<F>(self, calls: Calls<K, F>, submit: Submit) -> Result<(), Error>
    where
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) -> Result<ControlFlow<()>, HostError> + Send + Sync + 'static,
    {
        let is_blocking = self.task.hints.blocking;
        self.declare_calls(calls, |recorder, declaration, labels, units| {
            // A thread of the program that waits for the replay may take part in it, and a thread that waits
            // in a call holds up the units of its strand. So the replay submits the task.
            if is_blocking {
                recorder.add_submitted(declaration, labels, submit)
            } else {
                recorder.add(declaration, labels, units, submit)
            }
        })
    }

    /// Declares a host task, and adds it to the recorder by `add`.
    fn declare_calls<F>(
        self,
        calls: Calls<K, F>,
        add: impl FnOnce(
            &mut Recorder,
            &Declaration<'_, K>,
            &[(Label, usize)],
            Box<dyn Units>,
        ) -> Result<(), Error>,
    ) -> Result<(), Error>
    where
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) -> Result<ControlFlow<()>, HostError> + Send + Sync + 'static,
    {
        let Self { task, recorder } = self;
        let TaskBuilder { core, group, label, space, accesses, .. } = task;
        let chunks = calls.chunks.clone();
        let mut declaration = Declaration::new(core, group, &label, Chunk::whole(space), &chunks);
        declaration.pieces = pieces(chunks.len());
        let bound = accesses.declare(&mut declaration).map_err(|error| core.refuse(error))?;
        let labels = L::labels(&bound);
        let units = Box::new(HostUnits::<K, L, F> { bound, calls });
        add(&mut recorder.borrow_mut(), &declaration, &labels, units).map_err(|error| core.refuse(error))
    }
}
