//! The builder of a recorded task: that of a task, as far as a task can be replayed.

use super::{
    recorder::Recorder,
    units::{HostUnit, KernelUnits, Units},
};
use crate::{
    data::{buffer::Buffer, element::Element, host_object::HostObject},
    error::Error,
    label::Label,
    submit::{
        access::{Read, Update, Write},
        access_list::{AccessList, Append, KernelAccessList},
        declaration::{Declaration, Piece},
        effect::{Effect, Sequential},
        host_result::{HostError, HostResult},
        index_space::{IndexSpace, Once, Over},
        operator::Operator,
        recorded::{self, access::RecordedAccessList},
        reduce::Reduce,
        task::{NewTask, TaskBuilder},
        tile::Tile,
    },
};
use anabranch_grid::{Chunk, RangeMapper};
use std::{cell::RefCell, ops::ControlFlow, slice};

/// A task of a [sequence](super::Sequence) that has only a name so far.
#[derive(Debug)]
#[must_use = "a task is recorded by `kernel`, `each` or `host`"]
pub struct NewSequenceTask<'r> {
    pub(super) task: NewTask<'r>,
    pub(super) recorder: &'r RefCell<Recorder>,
}

impl<'r> NewSequenceTask<'r> {
    /// Sets the index space of a kernel: see [`NewTask::over`].
    pub fn over<const K: usize>(self, space: impl IndexSpace<K>) -> SequenceTask<'r, K, Over, ()> {
        SequenceTask { task: self.task.over(space), recorder: self.recorder }
    }

    /// Makes the task a host task whose function is called once in each replay.
    pub fn once(self) -> SequenceTask<'r, 0, Once, ()> {
        SequenceTask { task: self.task.once(), recorder: self.recorder }
    }
}

/// A task of a [sequence](super::Sequence) whose accesses are being declared, as those of a [`TaskBuilder`].
#[derive(Debug)]
#[must_use = "a task is recorded by `kernel`, `each` or `host`"]
pub struct SequenceTask<'r, const K: usize, S, L> {
    task: TaskBuilder<'r, K, S, L>,
    recorder: &'r RefCell<Recorder>,
}

impl<'r, const K: usize, S, L> SequenceTask<'r, K, S, L> {
    fn with<M>(
        self,
        longer: impl FnOnce(TaskBuilder<'r, K, S, L>) -> TaskBuilder<'r, K, S, M>,
    ) -> SequenceTask<'r, K, S, M> {
        SequenceTask { task: longer(self.task), recorder: self.recorder }
    }

    /// Declares a read: see [`TaskBuilder::read`].
    pub fn read<T, const D: usize, M>(
        self,
        buffer: &Buffer<T, D>,
        mapper: M,
    ) -> SequenceTask<'r, K, S, L::Longer>
    where
        T: Element,
        M: RangeMapper<K, D> + 'static,
        L: Append<Read<T, D, M>>,
    {
        self.with(|task| task.read(buffer, mapper))
    }

    /// Declares a write: see [`TaskBuilder::write`].
    pub fn write<T, const D: usize, M>(
        self,
        buffer: &Buffer<T, D>,
        mapper: M,
    ) -> SequenceTask<'r, K, S, L::Longer>
    where
        T: Element,
        M: RangeMapper<K, D> + 'static,
        L: Append<Write<T, D, M>>,
    {
        self.with(|task| task.write(buffer, mapper))
    }

    /// Declares an update: see [`TaskBuilder::update`].
    pub fn update<T, const D: usize, M>(
        self,
        buffer: &Buffer<T, D>,
        mapper: M,
    ) -> SequenceTask<'r, K, S, L::Longer>
    where
        T: Element,
        M: RangeMapper<K, D> + 'static,
        L: Append<Update<T, D, M>>,
    {
        self.with(|task| task.update(buffer, mapper))
    }
}

impl<'r, L> SequenceTask<'r, 0, Once, L> {
    /// Declares an effect on a host object, in the order of the tasks: see [`TaskBuilder::effect`]. A replay decides once in which order it executes
    /// its tasks, so it has no exclusive and no relaxed effects.
    pub fn effect<T: Send + 'static>(
        self,
        object: &HostObject<T>,
        order: Sequential,
    ) -> SequenceTask<'r, 0, Once, L::Longer>
    where
        L: Append<Effect<T, Sequential>>,
    {
        self.with(|task| task.effect(object, order))
    }

    /// Records the task. In each replay `function` is called once, with the number of the replay, from 0, and the views. It may
    /// return a `Result`. An error or a panic ends the replays. It runs on a thread that runs kernels, so it should not block.
    ///
    /// # Errors
    /// If the declaration is wrong: see [`Error`].
    pub fn host<F, R>(self, function: F) -> Result<(), Error>
    where
        L: AccessList<0>,
        F: for<'v> Fn(u64, L::Views<'v>) -> R + Send + Sync + 'static,
        R: HostResult,
    {
        let function = move |replay, views: L::Views<'_>| {
            function(replay, views).into_result().map(ControlFlow::Continue)
        };
        self.record_host(function, |recorder, declaration, labels, units| {
            recorder.add(declaration, labels, units)
        })
    }

    /// Records the task without its place among the others. The replay in which `condition` returns true is the last one.
    pub(super) fn ends_when<F>(self, condition: F) -> Result<(), Error>
    where
        L: AccessList<0>,
        F: for<'v> Fn(u64, L::Views<'v>) -> bool + Send + Sync + 'static,
    {
        let function = move |replay, views: L::Views<'_>| {
            Ok(if condition(replay, views) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        self.record_host(function, |recorder, declaration, labels, units| {
            recorder.keep(declaration, labels, units);
            Ok(())
        })
    }

    fn record_host<F>(
        self,
        function: F,
        add: impl FnOnce(
            &mut Recorder,
            &Declaration<'_, 0>,
            Vec<(Label, usize)>,
            Box<dyn Units>,
        ) -> Result<(), Error>,
    ) -> Result<(), Error>
    where
        L: AccessList<0>,
        F: for<'v> Fn(u64, L::Views<'v>) -> Result<ControlFlow<()>, HostError> + Send + Sync + 'static,
    {
        let Self { task, recorder } = self;
        let TaskBuilder { core, group, label, space, accesses, .. } = task;
        let whole = Chunk::whole(space);
        let mut declaration = Declaration::new(core, group, &label, whole, slice::from_ref(&whole));
        declaration.pieces = vec![Piece::new(0..1)];
        let bound = accesses.declare(&mut declaration)?;
        let labels = L::labels(&bound);
        add(&mut recorder.borrow_mut(), &declaration, labels, Box::new(HostUnit::<L, _> { bound, function }))
    }
}

impl<'r, const K: usize, L> SequenceTask<'r, K, Over, L> {
    /// Declares a reduction: see [`TaskBuilder::reduce`].
    pub fn reduce<T, const D: usize, O>(
        self,
        buffer: &Buffer<T, D>,
        operator: O,
    ) -> SequenceTask<'r, K, Over, L::Longer>
    where
        T: Element,
        O: Operator<T>,
        L: Append<Reduce<T, D, O>>,
    {
        self.with(|task| task.reduce(buffer, operator))
    }

    /// Declares a reduction that includes what the buffer has: see [`TaskBuilder::reduce_into`].
    pub fn reduce_into<T, const D: usize, O>(
        self,
        buffer: &Buffer<T, D>,
        operator: O,
    ) -> SequenceTask<'r, K, Over, L::Longer>
    where
        T: Element,
        O: Operator<T>,
        L: Append<Reduce<T, D, O>>,
    {
        self.with(|task| task.reduce_into(buffer, operator))
    }

    /// Splits the index space into at most this many chunks, by default one for each thread: see [`TaskBuilder::chunks`].
    pub fn chunks(self, chunks: usize) -> Self {
        self.with(|task| task.chunks(chunks))
    }

    /// Makes the number of rows of a chunk a multiple of this number: see [`TaskBuilder::granularity`].
    pub fn granularity(self, rows: usize) -> Self {
        self.with(|task| task.granularity(rows))
    }

    /// Treats denormal floating-point numbers as zero: see [`TaskBuilder::flush_denormals`].
    pub fn flush_denormals(self) -> Self {
        self.with(TaskBuilder::flush_denormals)
    }

    /// Records the task as a kernel: see [`TaskBuilder::kernel`]. [`Tile::replay`] gives the number of the replay.
    ///
    /// # Errors
    /// If the declaration is wrong: see [`Error`].
    pub fn kernel<F>(self, kernel: F) -> Result<(), Error>
    where
        L: AccessList<K> + KernelAccessList,
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
    {
        self.record(kernel, |_, _| Ok(()))
    }

    /// Records the task as a recorded kernel, which runs on the host: see [`TaskBuilder::each`].
    ///
    /// # Errors
    /// As [`TaskBuilder::each`].
    pub fn each(mut self, closure: impl for<'t> FnOnce(L::Symbols<'t>)) -> Result<(), Error>
    where
        L: RecordedAccessList<K> + KernelAccessList,
    {
        let recording = recorded::record(&self.task.label, &self.task.accesses, closure)?;
        self.task.cut_at_leaves()?;
        let program = self.task.core.programs.of(&recording);
        let function = recorded::function::<K, L>(program, &recording);
        self.record(function, |declaration, bound| {
            let declared =
                recorded::Declared::<K, L> { task: declaration.task, recording: &recording, bound };
            declared.check_whole(declaration.whole.range, &declaration.accesses)?;
            declared.check_chunks(declaration.chunks)
        })
    }

    fn record<F>(
        self,
        function: F,
        check: impl FnOnce(&Declaration<'_, K>, &L::Bound) -> Result<(), Error>,
    ) -> Result<(), Error>
    where
        L: AccessList<K>,
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
    {
        let Self { mut task, recorder } = self;
        let threads = task.core.threads();
        task.choose_leaves();
        let chunks = task.split(threads);
        let TaskBuilder { core, group, label, space, hints, accesses, .. } = task;
        let mut declaration = Declaration::new(core, group, &label, Chunk::whole(space), &chunks);
        declaration.pieces = (0..chunks.len()).map(|chunk| Piece::new(chunk..chunk + 1)).collect();
        declaration.has_leaves = hints.has_bands();
        let bound = accesses.declare(&mut declaration)?;
        check(&declaration, &bound)?;
        let labels = L::labels(&bound);
        let flush_denormals = hints.flush_denormals;
        let units: Box<dyn Units> =
            Box::new(KernelUnits::<K, L, F> { bound, chunks: chunks.clone(), function, flush_denormals });
        recorder.borrow_mut().add(&declaration, labels, units)
    }
}
