//! The builder of a recorded task: that of a task, as far as a task can be replayed.

use super::{
    recorder::Recorder,
    template::{Submit, Template},
    units::{KernelUnits, Units},
};
use crate::{
    data::{buffer::Buffer, element::Element},
    device::Device,
    error::Error,
    submit::{
        access::{
            Access, Read, Update, Write,
            effect::{HasEffects, Sequential},
            list::{AccessList, Append, KernelAccessList},
            operator::Operator,
            reduce::Reduce,
        },
        launch::declaration::{Declaration, Piece},
        recorded::{self, access::RecordedAccessList},
        task::{
            NewTask, TaskBuilder,
            index_space::{Collective, IndexSpace, Once, Over},
            kernel_place::KernelPlace,
            tile::Tile,
        },
    },
};
use anabranch_graph::command::Work;
use anabranch_grid::{Chunk, RangeMapper};
use std::{cell::RefCell, sync::Arc};

/// A task of a [sequence](super::Sequence) that has only a name so far.
#[derive(Debug)]
#[must_use = "a task is recorded by `kernel`, `each` or `host`"]
pub struct NewSequenceTask<'r> {
    pub(super) task: NewTask<'r>,
    pub(super) recorder: &'r RefCell<Recorder>,
}

impl<'r> NewSequenceTask<'r> {
    /// Sets the index space of a kernel, or of a host task with a part for each node: see [`NewTask::over`].
    pub fn over<const K: usize>(self, space: impl IndexSpace<K>) -> SequenceTask<'r, K, Over, ()> {
        SequenceTask { task: self.task.over(space), recorder: self.recorder }
    }

    /// Makes the task a host task whose function is called once in each replay.
    pub fn once(self) -> SequenceTask<'r, 0, Once, ()> {
        SequenceTask { task: self.task.once(), recorder: self.recorder }
    }

    /// Makes the task a host task whose function is called once on every node in each replay: see
    /// [`NewTask::collective`].
    pub fn collective(self) -> SequenceTask<'r, 1, Collective, ()> {
        SequenceTask { task: self.task.collective(), recorder: self.recorder }
    }
}

/// A task of a [sequence](super::Sequence) whose accesses are being declared, as those of a [`TaskBuilder`].
/// Mappers and operators are `Clone`, because each replay may need its own.
#[derive(Debug)]
#[must_use = "a task is recorded by `kernel`, `each` or `host`"]
pub struct SequenceTask<'r, const K: usize, S, L> {
    pub(super) task: TaskBuilder<'r, K, S, L>,
    pub(super) recorder: &'r RefCell<Recorder>,
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
        M: RangeMapper<K, D> + Clone + 'static,
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
        M: RangeMapper<K, D> + Clone + 'static,
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
        M: RangeMapper<K, D> + Clone + 'static,
        L: Append<Update<T, D, M>>,
    {
        self.with(|task| task.update(buffer, mapper))
    }

    /// Declares an effect on a host object, in the order of the tasks: see [`TaskBuilder::effect`]. A replay
    /// decides once in which order it executes its tasks, so it has no exclusive and no relaxed effects.
    pub fn effect<E>(self, object: &E, order: Sequential) -> SequenceTask<'r, K, S, L::Longer>
    where
        E: HasEffects<S, Sequential>,
        E::Effect: Access<K>,
        L: Append<E::Effect>,
    {
        self.with(|task| task.effect(object, order))
    }

    /// Declares that the host function blocks: see [`TaskBuilder::blocking`]. A call that blocks would hold
    /// up a thread of the replay. So each replay submits the tasks of the sequence then, as with several
    /// nodes: see [`Sequence::replay`](super::Sequence::replay).
    pub fn blocking(self) -> Self {
        self.with(TaskBuilder::blocking)
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

    /// Splits the index space into at most this many chunks: see [`TaskBuilder::chunks`]. On the host of one
    /// node the default is one chunk for each thread.
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

    /// Lets a device round each product by itself: see [`TaskBuilder::precise`].
    pub fn precise(self) -> Self {
        self.with(TaskBuilder::precise)
    }

    /// Sets the device that runs the recorded kernel or the shader: see [`TaskBuilder::on`]. Then each replay
    /// submits the tasks of the sequence, as with several nodes: see [`Sequence::replay`](super::Sequence::replay).
    pub fn on(self, device: &Arc<dyn Device>) -> Self {
        self.with(|task| task.on(device))
    }

    /// Lets the threads of the runtime run the task, also if the runtime has a device: see
    /// [`TaskBuilder::on_host`].
    pub fn on_host(self) -> Self {
        self.with(TaskBuilder::on_host)
    }

    /// Sets the node that executes all of the index space: see [`TaskBuilder::on_node`](TaskBuilder::<1,
    /// Over, ()>::on_node).
    ///
    /// # Errors
    /// [`Error::TaskSetting`] if there is no such node.
    pub fn on_node(self, node: u16) -> Result<Self, Error> {
        let Self { task, recorder } = self;
        Ok(Self { task: task.on_node(node)?, recorder })
    }

    /// Records the task as a kernel: see [`TaskBuilder::kernel`]. [`Tile::replay`] gives the number of the
    /// replay.
    ///
    /// # Errors
    /// If the declaration is wrong: see [`Error`].
    pub fn kernel<F>(self, kernel: F) -> Result<(), Error>
    where
        L: AccessList<K> + KernelAccessList + Clone + Send + Sync,
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
    {
        self.task.check_is_on_host()?;
        self.record_kernel(kernel, |_, _| Ok(()))
    }

    /// Records a kernel for the host, with a check of the declaration.
    pub(super) fn record_kernel<F>(
        self,
        kernel: F,
        check: impl FnOnce(&Declaration<'_, K>, &L::Bound) -> Result<(), Error>,
    ) -> Result<(), Error>
    where
        L: AccessList<K> + KernelAccessList + Clone + Send + Sync,
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
    {
        let kernel = Arc::new(kernel);
        let (template, by_submission) = (Template::of(&self.task), Arc::clone(&kernel));
        let submit: Submit = Box::new(move |replay| {
            let (kernel, number) = (Arc::clone(&by_submission), replay.number);
            template.begin(replay).kernel(move |tile, views| kernel(&tile.in_replay(number), views))
        });
        self.record(kernel, submit, check)
    }

    /// Records the task as a recorded kernel: see [`TaskBuilder::each`].
    /// [`Output::replay`](crate::recorded::Output::replay) gives the number of the replay.
    ///
    /// # Errors
    /// As [`TaskBuilder::each`].
    pub fn each(mut self, closure: impl for<'t> FnOnce(L::Symbols<'t>)) -> Result<(), Error>
    where
        L: RecordedAccessList<K> + KernelAccessList + Clone + Send + Sync,
    {
        let recording = self.task.recording(closure)?;
        if let Some(chosen) = self.task.program_on_device(&recording)? {
            return self.record_on_device(chosen, recording);
        }
        self.task.place = KernelPlace::Host;
        let core = self.task.core;
        let function = Arc::new(recorded::function::<K, L>(core.programs.of(&recording), &recording));
        let recording = Arc::new(recording);
        let (template, by_submission) = (Template::of(&self.task), Arc::clone(&recording));
        let submit: Submit = Box::new(move |replay| {
            template.begin(replay).submit_recording(&by_submission.in_replay(replay.number))
        });
        self.record(function, submit, |declaration, bound| {
            recorded::check_recording::<K, L>(core, &recording, declaration, bound)
        })
    }

    fn record<F>(
        self,
        function: Arc<F>,
        submit: Submit,
        check: impl FnOnce(&Declaration<'_, K>, &L::Bound) -> Result<(), Error>,
    ) -> Result<(), Error>
    where
        L: AccessList<K>,
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
    {
        let Self { mut task, recorder } = self;
        let core = task.core;
        task.choose_leaves();
        let chunks = task.split(core.threads());
        let TaskBuilder { group, label, space, hints, accesses, .. } = task;
        let mut declaration = Declaration::new(core, group, &label, Chunk::whole(space), &chunks);
        declaration.pieces = (0..chunks.len()).map(|chunk| Piece::new(chunk..chunk + 1)).collect();
        declaration.has_leaves = hints.has_bands();
        hints.record(&mut declaration, Work::Kernel { space: space.cast() });
        let bound = accesses.declare(&mut declaration).map_err(|error| core.refuse(error))?;
        check(&declaration, &bound)?;
        let labels = L::labels(&bound);
        let flush_denormals = hints.flush_denormals;
        let units: Box<dyn Units> =
            Box::new(KernelUnits::<K, L, F> { bound, chunks: chunks.clone(), function, flush_denormals });
        let added = recorder.borrow_mut().add(&declaration, &labels, units, submit);
        added.map_err(|error| core.refuse(error))
    }
}

macro_rules! tiles {
    ($($rank:literal),*) => {$(
        impl<L> SequenceTask<'_, $rank, Over, L> {
            /// Splits along the first two dimensions: see [`TaskBuilder::tiles`].
            pub fn tiles(self, rows: usize, cols: usize) -> Self {
                self.with(|task| task.tiles(rows, cols))
            }
        }
    )*};
}

tiles!(2, 3);
