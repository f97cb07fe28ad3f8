//! The typed builder of a task, from `rt.task("name")` to its accesses, and to `.host(…)`. What only kernels
//! have is in [`kernel`](super::task::kernel).

pub(crate) mod batch;
pub(in crate::submit) mod hints;
pub(crate) mod host_result;
pub(crate) mod index_space;
mod kernel;
pub(in crate::submit) mod kernel_place;
pub(in crate::submit) mod on_device;
pub(crate) mod tile;

use self::{
    hints::Hints,
    host_result::{HostError, HostResult},
    index_space::{Collective, IndexSpace, Once, Over},
    kernel_place::KernelPlace,
    tile::Tile,
};
use super::{
    access::{
        Access, Read, Update, Write,
        effect::HasEffects,
        list::{AccessList, Append},
    },
    launch::{
        body::{Chunks, HostBody},
        declaration::Declaration,
        launch,
    },
};
use crate::{
    data::{buffer::Buffer, element::Element},
    error::Error,
    execute::{Core, GroupHandle, Nodes, Place, TaskHandle},
    label::TaskLabel,
};
use anabranch_graph::command::Work;
use anabranch_grid::{Chunk, GridBox, RangeMapper};
use smallvec::smallvec;
use std::{borrow::Cow, marker::PhantomData, panic::Location, slice, sync::Arc};

/// A task that has only a name so far: see [`Runtime::task`](crate::Runtime::task).
#[derive(Clone, Debug)]
#[must_use = "a task is submitted by `kernel`, `each` or `host`"]
pub struct NewTask<'rt> {
    core: &'rt Arc<Core>,
    group: Option<&'rt GroupHandle>,
    label: TaskLabel,
}

impl<'rt> NewTask<'rt> {
    pub(crate) fn new(
        core: &'rt Arc<Core>,
        group: Option<&'rt GroupHandle>,
        name: impl Into<Cow<'static, str>>,
        location: &'static Location<'static>,
    ) -> Self {
        Self { core, group, label: TaskLabel { name: name.into(), location } }
    }

    /// Sets the index space. The task is a [kernel](TaskBuilder::kernel), which is called once for each chunk
    /// of the index space, or a [host task](TaskBuilder::host), which is called on each node for the part of
    /// that node. An index space has at most three dimensions. A program with one of more does not compile:
    ///
    /// ```compile_fail
    /// let rt = anabranch::Runtime::new().unwrap();
    /// let _ = rt.task("too many dimensions").over([2, 2, 2, 2]);
    /// ```
    pub fn over<const K: usize>(self, space: impl IndexSpace<K>) -> TaskBuilder<'rt, K, Over, ()> {
        self.begin(space.index_space())
    }

    /// Makes the task a host task whose function is called once, on a thread where it may block.
    #[inline]
    pub fn once(self) -> TaskBuilder<'rt, 0, Once, ()> {
        self.begin(GridBox::full([]))
    }

    /// Makes the task a host task whose function is called once on every node, for work that all nodes do
    /// together. Its index space has one point for each node.
    pub fn collective(self) -> TaskBuilder<'rt, 1, Collective, ()> {
        let nodes = self.core.cluster().map_or(1, |cluster| cluster.nodes());
        self.begin(GridBox::full([nodes.into()]))
    }

    pub(super) fn begin<const K: usize, S>(self, space: GridBox<K>) -> TaskBuilder<'rt, K, S, ()> {
        const { assert!(K <= 3, "an index space has at most three dimensions") };
        TaskBuilder {
            core: self.core,
            group: self.group,
            label: self.label,
            space,
            hints: Hints::default(),
            accesses: (),
            place: KernelPlace::Default,
            _kind: PhantomData,
        }
    }
}

/// A task whose accesses are being declared: `L` so far. `S` is the kind of the task: [`Over`], [`Once`],
/// [`Each`](super::task::index_space::Each) or [`Collective`].
///
/// Accesses reach the kernel or host function as a tuple of views, in the order of their declaration:
/// `&`[`ReadView`](crate::ReadView) for a read, `&mut` [`WriteView`](crate::WriteView) for a write, `&mut`
/// [`UpdateView`](crate::UpdateView) for an update, `&mut` [`Reduction`](crate::Reduction) for a reduction,
/// `&mut T` for a sequential or exclusive effect, `&T` for a relaxed one,
/// `Option<`[`MpiComm`](crate::MpiComm)`>` for a communicator.
#[derive(Debug)]
#[must_use = "a task is submitted by `kernel`, `each` or `host`"]
pub struct TaskBuilder<'rt, const K: usize, S, L> {
    pub(super) core: &'rt Arc<Core>,
    pub(super) group: Option<&'rt GroupHandle>,
    pub(super) label: TaskLabel,
    pub(super) space: GridBox<K>,
    pub(super) hints: Hints<K>,
    pub(super) accesses: L,
    pub(super) place: KernelPlace,
    pub(super) _kind: PhantomData<S>,
}

impl<'rt, const K: usize, S, L> TaskBuilder<'rt, K, S, L> {
    /// Declares that each chunk reads the region that `mapper` gives for it.
    pub fn read<T, const D: usize, M>(
        self,
        buffer: &Buffer<T, D>,
        mapper: M,
    ) -> TaskBuilder<'rt, K, S, L::Longer>
    where
        T: Element,
        M: RangeMapper<K, D> + 'static,
        L: Append<Read<T, D, M>>,
    {
        self.append(Read { buffer: buffer.clone(), mapper })
    }

    /// Declares that each chunk overwrites *all* elements that `mapper` gives for it, without reading them.
    /// No element may be written by two chunks: a task of which two chunks would do so is refused. With one
    /// chunk, which is the default with one thread, there is nothing to refuse.
    ///
    /// The elements are unspecified until the task writes them, because the task may get other memory than
    /// earlier tasks: see [`Buffer::with_versions`]. A task that writes only some elements, or that reads
    /// elements first, declares an [`update`](Self::update). The [checked mode](crate::Builder::checked)
    /// finds tasks that should.
    pub fn write<T, const D: usize, M>(
        self,
        buffer: &Buffer<T, D>,
        mapper: M,
    ) -> TaskBuilder<'rt, K, S, L::Longer>
    where
        T: Element,
        M: RangeMapper<K, D> + 'static,
        L: Append<Write<T, D, M>>,
    {
        self.append(Write { buffer: buffer.clone(), mapper })
    }

    /// Declares that each chunk reads and changes the region that `mapper` gives for it. No element may be
    /// changed by two chunks.
    pub fn update<T, const D: usize, M>(
        self,
        buffer: &Buffer<T, D>,
        mapper: M,
    ) -> TaskBuilder<'rt, K, S, L::Longer>
    where
        T: Element,
        M: RangeMapper<K, D> + 'static,
        L: Append<Update<T, D, M>>,
    {
        self.append(Update { buffer: buffer.clone(), mapper })
    }

    /// Declares an effect on a host object. `order` says how it is ordered with other effects on the same
    /// object: [`sequential()`](crate::sequential), [`exclusive()`](crate::exclusive) or
    /// [`relaxed()`](crate::relaxed). Only host tasks have effects, because a kernel runs on several threads
    /// at once. `object` is a [`HostObject`](crate::HostObject), or one of the whole cluster: a
    /// [`ClusterObject`](crate::ClusterObject), which places a `once` task on its home. A collective task
    /// that calls MPI has a sequential effect on a [`Communicator`](crate::Communicator).
    pub fn effect<E, O>(mut self, object: &E, order: O) -> TaskBuilder<'rt, K, S, L::Longer>
    where
        E: HasEffects<S, O>,
        E::Effect: Access<K>,
        L: Append<E::Effect>,
    {
        let _ = order;
        object.place().into_iter().for_each(|home| self.hints.add_home(home));
        self.append(object.effect())
    }

    /// Declares that the host function blocks: it sleeps, waits for another thread or program, or takes a
    /// lock that a thread may hold while it waits for the runtime or submits. Without this, a thread that
    /// waits for the task may run it on its own stack, and so may one that submits in a runtime that [helps
    /// while submitting](crate::Builder::help_while_submitting).
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let waiting = std::thread::current().id();
    /// let elsewhere = move |()| assert_ne!(std::thread::current().id(), waiting);
    /// rt.task("asks a server").once().blocking().host(elsewhere)?.wait()?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn blocking(mut self) -> Self {
        self.hints.blocking = true;
        self
    }

    fn placed(mut self, node: u16) -> Result<Self, Error> {
        if node >= self.core.nodes() {
            let range = "an existing node: the first is 0";
            return Err(Error::of_setting(&self.label, "its node", node.to_string(), range));
        }
        self.hints.node = Some(node);
        Ok(self)
    }

    pub(super) fn append<A>(self, access: A) -> TaskBuilder<'rt, K, S, L::Longer>
    where
        L: Append<A>,
    {
        let Self { core, group, label, space, hints, accesses, place, _kind } = self;
        TaskBuilder { core, group, label, space, hints, accesses: accesses.append(access), place, _kind }
    }
}

impl<'rt, L> TaskBuilder<'rt, 0, Once, L> {
    /// Sets the priority of the task (0 by default). Of ready tasks that conflict, the one with the highest
    /// priority starts first, and of equal ones the oldest. A task that was passed over for long starts
    /// before all others.
    pub fn priority(mut self, priority: i32) -> Self {
        self.hints.priority = priority;
        self
    }

    /// Sets the node that executes the task (by default the home of the [cluster
    /// objects](crate::ClusterObject) that the task has effects on, or 0 if there are none). A [dry
    /// run](crate::Builder::dry_run) has as many nodes as the program asks for.
    ///
    /// # Errors
    /// [`Error::TaskSetting`] if there is no such node.
    pub fn on_node(self, node: u16) -> Result<Self, Error> {
        self.placed(node)
    }

    /// Submits the task. `function` is called once, when all tasks that it depends on are done, on a host
    /// lane, where it may block. It may return a `Result`. An error or a panic fails the task.
    ///
    /// A thread that waits for the task may run it instead, on its own stack: see
    /// [`Runtime::wait`](crate::Runtime::wait) and [`blocking`](Self::blocking).
    ///
    /// Blocks while the [limit of tasks in flight](crate::Builder::max_in_flight) is reached.
    ///
    /// # Errors
    /// If the declaration is wrong: see [`Error`]. Nothing is submitted then.
    pub fn host<F, R>(self, function: F) -> Result<TaskHandle, Error>
    where
        L: AccessList<0>,
        F: for<'v> FnOnce(L::Views<'v>) -> R + Send + 'static,
        R: HostResult,
    {
        self.submit_host(Work::HostOnce, |_, views| function(views).into_result())
    }
}

impl<L> TaskBuilder<'_, 1, Collective, L> {
    /// Submits the task. `function` is called once on every node, with the point of that node in the index
    /// space, on a host lane, where it may block. It may return a `Result`. An error or a panic fails the
    /// task.
    ///
    /// A thread that waits for the task may run it instead, on its own stack: see
    /// [`Runtime::wait`](crate::Runtime::wait) and [`blocking`](Self::blocking).
    ///
    /// Blocks while the [limit of tasks in flight](crate::Builder::max_in_flight) is reached.
    ///
    /// # Errors
    /// If the declaration is wrong: see [`Error`]. Nothing is submitted then.
    pub fn host<F, R>(self, function: F) -> Result<TaskHandle, Error>
    where
        L: AccessList<1>,
        F: for<'v> FnOnce(&Tile<1>, L::Views<'v>) -> R + Send + 'static,
        R: HostResult,
    {
        self.submit_host(Work::Collective, |tile, views| function(tile, views).into_result())
    }
}

impl<const K: usize, L> TaskBuilder<'_, K, Over, L> {
    /// Sets the node that executes all of the index space. By default all nodes share it. In a
    /// [dry run](crate::Builder::dry_run) these are the nodes that the program asks for.
    ///
    /// # Errors
    /// [`Error::TaskSetting`] if there is no such node.
    pub fn on_node(self, node: u16) -> Result<Self, Error> {
        self.placed(node)
    }

    /// Submits the task as a host task. `function` is called once on each node for the part of the index
    /// space that belongs to that node, on a host lane, where it may block. A node without a part does not
    /// call it, and no node does if the index space is empty. It may return a `Result`. An error or a panic
    /// fails the task.
    ///
    /// A thread that waits for the task may run it instead, on its own stack: see
    /// [`Runtime::wait`](crate::Runtime::wait) and [`blocking`](Self::blocking).
    ///
    /// Blocks while the [limit of tasks in flight](crate::Builder::max_in_flight) is reached.
    ///
    /// # Errors
    /// If the declaration is wrong: see [`Error`]. Only kernels have reductions. Nothing is submitted then.
    pub fn host<F, R>(mut self, function: F) -> Result<TaskHandle, Error>
    where
        L: AccessList<K>,
        F: for<'v> FnOnce(&Tile<K>, L::Views<'v>) -> R + Send + 'static,
        R: HostResult,
    {
        self.check_has_no_reduction()?;
        self.hints.pieces = 1;
        let work = Work::HostChunks { space: self.space.cast() };
        self.submit_host(work, |tile, views| function(tile, views).into_result())
    }
}

impl<const K: usize, S, L: AccessList<K>> TaskBuilder<'_, K, S, L> {
    /// With several nodes: the chunks of this one.
    #[inline]
    pub(super) fn part(&self, work: impl FnOnce() -> Work) -> Option<Chunks<K>> {
        self.core.several_nodes().map(|nodes| self.part_on_nodes(nodes, &work()))
    }

    #[cold]
    fn part_on_nodes(&self, nodes: &Nodes, work: &Work) -> Chunks<K> {
        let part = nodes.part(work, &self.hints.for_nodes(self.core.nodes()), false);
        let chunk = |range: GridBox<3>| Chunk { range: range.cast(), global: self.space };
        part.chunk.into_iter().map(chunk).collect()
    }

    /// Checks that a host task has no reduction.
    pub(super) fn check_has_no_reduction(&self) -> Result<(), Error> {
        if !L::REDUCES {
            return Ok(());
        }
        let (value, range) =
            ("a host task with a reduction".into(), "`kernel`: its chunks are the leaves of the tree");
        Err(Error::of_setting(&self.label, "the task", value, range))
    }

    /// Submits a host task that is called once on each node for its part, with a function whose error is one
    /// of a host function already.
    pub(super) fn submit_host<F>(mut self, work: Work, function: F) -> Result<TaskHandle, Error>
    where
        F: for<'v> FnOnce(&Tile<K>, L::Views<'v>) -> Result<(), HostError> + Send + 'static,
    {
        self.check_is_on_host()?;
        // Only a task that runs once has noted homes.
        self.hints.go_home(&self.label).map_err(|error| self.core.refuse(error))?;
        let whole = Chunk::whole(self.space);
        let part = self.part(|| work);
        let alone = if whole.range.is_empty() { &[] } else { slice::from_ref(&whole) };
        let chunks = part.as_deref().unwrap_or(alone);
        let mut declaration = Declaration::new(self.core, self.group, &self.label, whole, chunks);
        declaration.priority = self.hints.priority;
        self.hints.record(&mut declaration, work);
        let bound = self.accesses.declare(&mut declaration).map_err(|error| self.core.refuse(error))?;
        declaration.check_order().map_err(|error| self.core.refuse(error))?;
        // A node without a part, or with an empty one, does not run the function.
        let chunk = chunks.first().copied().unwrap_or(whole);
        let body = |bound| HostBody::<K, L, F>::new(chunk, bound, function);
        let place = if self.hints.blocking { Place::Blocking } else { Place::Host };
        let node = launch::<K, L, _>(&mut declaration, bound, place, false, body)?;
        Ok(TaskHandle::new(smallvec![node]))
    }
}
