//! The typed builder of a task, from `rt.task("name")` to `.kernel(…)` or `.host(…)`.

use super::{
    access::{Access, Read, Update, Write},
    access_list::{AccessList, Append, KernelAccessList},
    body::{Chunks, HostBody, Kernel, KernelBody, PieceBody},
    declaration::{Declaration, Piece},
    effect::HasEffects,
    hints::Hints,
    host_result::{HostError, HostResult},
    index_space::{Collective, IndexSpace, Once, Over},
    launch::{launch, launch_pieces},
    operator::Operator,
    recorded::{self, access::RecordedAccessList},
    reduce::Reduce,
    tile::Tile,
};
use crate::{
    data::{buffer::Buffer, element::Element},
    error::{Cause, Error},
    execute::{Core, GroupHandle, Nodes, Place, TaskHandle},
    label::TaskLabel,
};
use anabranch_graph::command::{NodeId, Part, Work, default_leaves, pieces_of_node};
use anabranch_grid::{Chunk, GridBox, RangeMapper, split_1d, split_2d};
use smallvec::smallvec;
use std::{borrow::Cow, marker::PhantomData, panic::Location, slice, sync::Arc};

/// The default number of chunks of a kernel for each thread. It is more than one so that other threads take over a part of
/// the work of a thread that is held up, by another program for example.
const CHUNKS_PER_THREAD: usize = 4;

/// A task that has only a name so far: see [`Runtime::task`](crate::Runtime::task).
#[derive(Debug)]
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

    /// Sets the index space. The task is a [kernel](TaskBuilder::kernel), which is called once for each chunk of the index
    /// space, or a [host task](TaskBuilder::host), which is called on each node for the part of that node.
    pub fn over<const K: usize>(self, space: impl IndexSpace<K>) -> TaskBuilder<'rt, K, Over, ()> {
        self.begin(space.index_space())
    }

    /// Makes the task a host task whose function is called once, on a thread where it may block.
    pub fn once(self) -> TaskBuilder<'rt, 0, Once, ()> {
        self.begin(GridBox::full([]))
    }

    /// Makes the task a host task whose function is called once on every node, for work that all nodes do together. Its index
    /// space has one point for each node.
    pub fn collective(self) -> TaskBuilder<'rt, 1, Collective, ()> {
        let nodes = self.core.cluster().map_or(1, |cluster| cluster.nodes());
        self.begin(GridBox::full([nodes.into()]))
    }

    fn begin<const K: usize, S>(self, space: GridBox<K>) -> TaskBuilder<'rt, K, S, ()> {
        TaskBuilder {
            core: self.core,
            group: self.group,
            label: self.label,
            space,
            hints: Hints::default(),
            accesses: (),
            _kind: PhantomData,
        }
    }
}

/// A task whose accesses are being declared: `L` so far. `S` is the kind of the task: [`Over`], [`Once`] or [`Collective`].
///
/// Accesses reach the kernel or host function as a tuple of views, in the order of their declaration:
/// `&`[`ReadView`](crate::ReadView) for a read, `&mut` [`WriteView`](crate::WriteView) for a write, `&mut`
/// [`UpdateView`](crate::UpdateView) for an update, `&mut` [`Reduction`](crate::Reduction) for a reduction, `&mut T` for a sequential or exclusive effect, `&T` for a relaxed one,
/// `Option<`[`MpiComm`](crate::MpiComm)`>` for a communicator.
#[derive(Debug)]
#[must_use = "a task is submitted by `kernel`, `each` or `host`"]
pub struct TaskBuilder<'rt, const K: usize, S, L> {
    core: &'rt Arc<Core>,
    group: Option<&'rt GroupHandle>,
    label: TaskLabel,
    space: GridBox<K>,
    hints: Hints<K>,
    accesses: L,
    _kind: PhantomData<S>,
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

    /// Declares that each chunk overwrites *all* elements that `mapper` gives for it, without reading them. No element may be
    /// written by two chunks.
    ///
    /// The elements are unspecified until the task writes them, because the task may get other memory than earlier tasks: see
    /// [`Buffer::with_versions`]. A task that writes only some elements, or that reads elements first, declares an
    /// [`update`](Self::update). The [checked mode](crate::Builder::checked) finds tasks that should.
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

    /// Declares that each chunk reads and changes the region that `mapper` gives for it. No element may be changed by two
    /// chunks.
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

    /// Declares an effect on a host object. `order` says how it is ordered with other effects on the same object:
    /// [`sequential()`](crate::sequential), [`exclusive()`](crate::exclusive) or [`relaxed()`](crate::relaxed). Only host tasks
    /// have effects, because a kernel runs on several threads at once. `object` is a [`HostObject`](crate::HostObject), or one of the
    /// whole cluster: a [`ClusterObject`](crate::ClusterObject), which places a `once` task on its home. A collective task that calls MPI has a
    /// sequential effect on a [`Communicator`](crate::Communicator).
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

    /// Declares that the host function blocks: it sleeps, waits for another thread or program, or takes a lock that a thread which
    /// waits for the runtime may hold. Without this, a thread that waits for the task may run it on its own stack.
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
            return Err(Error::Setting { setting: "the node of a task", value: node.to_string(), range });
        }
        self.hints.node = Some(node);
        Ok(self)
    }

    fn append<A>(self, access: A) -> TaskBuilder<'rt, K, S, L::Longer>
    where
        L: Append<A>,
    {
        let Self { core, group, label, space, hints, accesses, _kind } = self;
        TaskBuilder { core, group, label, space, hints, accesses: accesses.append(access), _kind }
    }
}

impl<'rt, L> TaskBuilder<'rt, 0, Once, L> {
    /// Sets the priority of the task (0 by default). Of ready tasks that conflict, the one with the highest priority starts
    /// first, and of equal ones the oldest. A task that was passed over for long starts before all others.
    pub fn priority(mut self, priority: i32) -> Self {
        self.hints.priority = priority;
        self
    }

    /// Sets the node that executes the task (0 by default). A [dry run](crate::Builder::dry_run) has as many as the program asks for.
    ///
    /// # Errors
    /// [`Error::Setting`] if there is no such node.
    pub fn on_node(self, node: u16) -> Result<Self, Error> {
        self.placed(node)
    }

    /// Submits the task. `function` is called once, when all tasks that it depends on are done, on a host lane, where it may
    /// block. It may return a `Result`. An error or a panic fails the task.
    ///
    /// A thread that waits for the task may run it instead, on its own stack: see [`Runtime::wait`](crate::Runtime::wait) and
    /// [`blocking`](Self::blocking).
    ///
    /// Blocks while the [limit of tasks in flight](crate::Builder::max_in_flight) is reached.
    ///
    /// # Errors
    /// If the declaration is wrong: see [`Error`]. Nothing is submitted then.
    pub fn host<F, R>(mut self, function: F) -> Result<TaskHandle, Error>
    where
        L: AccessList<0>,
        F: for<'v> FnOnce(L::Views<'v>) -> R + Send + 'static,
        R: HostResult,
    {
        self.hints.go_home().map_err(|error| self.core.refuse(error))?;
        self.submit_host(Work::HostOnce, |_, views| function(views).into_result())
    }
}

impl<L> TaskBuilder<'_, 1, Collective, L> {
    /// Submits the task. `function` is called once on every node, with the point of that node in the index space, on a host
    /// lane, where it may block. It may return a `Result`. An error or a panic fails the task.
    ///
    /// A thread that waits for the task may run it instead, on its own stack: see [`Runtime::wait`](crate::Runtime::wait) and
    /// [`blocking`](Self::blocking).
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
    /// [`Error::Setting`] if there is no such node.
    pub fn on_node(self, node: u16) -> Result<Self, Error> {
        self.placed(node)
    }

    /// Submits the task as a host task. `function` is called once on each node for the part of the index space that belongs to
    /// that node, on a host lane, where it may block. A node without a part does not call it, and no node does if the index space is
    /// empty. It may return a `Result`. An error or a panic fails the task.
    ///
    /// A thread that waits for the task may run it instead, on its own stack: see [`Runtime::wait`](crate::Runtime::wait) and
    /// [`blocking`](Self::blocking).
    ///
    /// Blocks while the [limit of tasks in flight](crate::Builder::max_in_flight) is reached.
    ///
    /// # Errors
    /// If the declaration is wrong: see [`Error`]. Only kernels have reductions. Nothing is submitted then.
    pub fn host<F, R>(self, function: F) -> Result<TaskHandle, Error>
    where
        L: AccessList<K>,
        F: for<'v> FnOnce(&Tile<K>, L::Views<'v>) -> R + Send + 'static,
        R: HostResult,
    {
        if L::REDUCES {
            let (value, range) =
                ("a host task with a reduction".into(), "`kernel`: its chunks are the leaves of the tree");
            return Err(Error::Setting { setting: "the task", value, range });
        }
        let work = Work::HostChunks { space: self.space.cast() };
        self.submit_host(work, |tile, views| function(tile, views).into_result())
    }
}

impl<const K: usize, S, L: AccessList<K>> TaskBuilder<'_, K, S, L> {
    /// With several nodes: the chunks of this one.
    #[inline]
    fn part(&self, work: impl FnOnce() -> Work) -> Option<Chunks<K>> {
        self.core.several_nodes().map(|nodes| self.part_on_nodes(nodes, &work()))
    }

    #[cold]
    fn part_on_nodes(&self, nodes: &Nodes, work: &Work) -> Chunks<K> {
        let part = nodes.part(work, &self.hints.for_nodes(self.core.nodes()), false);
        let chunk = |range: GridBox<3>| Chunk { range: range.cast(), global: self.space };
        part.chunk.into_iter().map(chunk).collect()
    }

    fn submit_host<F>(mut self, work: Work, function: F) -> Result<TaskHandle, Error>
    where
        F: for<'v> FnOnce(&Tile<K>, L::Views<'v>) -> Result<(), HostError> + Send + 'static,
    {
        self.hints.pieces = 1;
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

impl<'rt, const K: usize, L> TaskBuilder<'rt, K, Over, L> {
    /// Splits the index space into at most this many chunks (by default four for each thread); chunks are never empty. The
    /// results of a kernel must not depend on the number of chunks.
    pub fn chunks(mut self, chunks: usize) -> Self {
        self.hints.chunks = Some(chunks.max(1));
        self
    }

    /// Orders the kernel piece by piece: its index space is cut along the first dimension into at most this many pieces, on all nodes
    /// together, and each piece begins as soon as its own inputs are there. By default a kernel is one piece.
    ///
    /// A stencil in pieces flows: a piece of the next step begins when the neighbouring pieces of this step are done, while
    /// others still run. Each piece costs as much as a task, so a piece should take some ten microseconds at least. Chunks are
    /// parts of pieces: by default a piece is one chunk if there are as many pieces as threads. The results must not depend on the
    /// number of pieces.
    ///
    /// A kernel with a reduction is one piece in any case, and so is a host task. The handle of the task is one for all
    /// pieces. Of several pieces that fail, each is reported.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let (mut u, mut v) = (rt.buffer_from(&vec![1.0_f64; 1000])?, rt.buffer([1000]));
    /// for _ in 0..10 {
    ///     rt.task("average")
    ///         .over([1000])
    ///         .pieces(8)
    ///         .read(&u, neighborhood([1]).periodic())
    ///         .write(&v, one_to_one())
    ///         .kernel(|tile, (u, v)| {
    ///             tile.points().for_each(|[i]| v.set([i], (u[[(i + 999) % 1000]] + u[[(i + 1) % 1000]]) / 2.0));
    ///         })?;
    ///     std::mem::swap(&mut u, &mut v);
    /// }
    /// assert_eq!(rt.fence(&u)?.wait()?[[500]], 1.0);
    /// # Ok::<(), anabranch::Error>(())
    /// ```
    pub fn pieces(mut self, pieces: usize) -> Self {
        self.hints.pieces = pieces.max(1);
        self
    }

    /// Declares that the kernel combines values into the elements of `buffer`. The results overwrite all elements; to include
    /// the current contents, see [`reduce_into`](Self::reduce_into).
    ///
    /// The results have the same bits on any number of threads and nodes. The chunks of the kernel are the leaves of the tree in which
    /// partial results are combined. There are at most 64 chunks, and of a large index space one for every 32,768 points (for every
    /// 512 points per element of the largest such buffer, if these are more), unless [`chunks`](Self::chunks) says otherwise.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let u = rt.buffer_from(&vec![0.1_f64; 1000])?;
    /// let total = rt.buffer::<f64, 0>([]);
    /// rt.task("sum")
    ///     .over([1000])
    ///     .read(&u, one_to_one())
    ///     .reduce(&total, sum())
    ///     .kernel(|tile, (u, total)| tile.points().for_each(|[i]| total.combine([], u[[i]])))?;
    /// assert!((rt.fence(&total)?.wait()?[[]] - 100.0).abs() < 1e-9);
    /// # Ok::<(), anabranch::Error>(())
    /// ```
    pub fn reduce<T, const D: usize, O>(
        self,
        buffer: &Buffer<T, D>,
        operator: O,
    ) -> TaskBuilder<'rt, K, Over, L::Longer>
    where
        T: Element,
        O: Operator<T>,
        L: Append<Reduce<T, D, O>>,
    {
        self.append(Reduce { buffer: buffer.clone(), operator, include_current: false })
    }

    /// Like [`reduce`](Self::reduce), with the current contents of the buffer as the first value of each element.
    pub fn reduce_into<T, const D: usize, O>(
        self,
        buffer: &Buffer<T, D>,
        operator: O,
    ) -> TaskBuilder<'rt, K, Over, L::Longer>
    where
        T: Element,
        O: Operator<T>,
        L: Append<Reduce<T, D, O>>,
    {
        self.append(Reduce { buffer: buffer.clone(), operator, include_current: true })
    }

    /// Makes the number of rows of a chunk a multiple of this number (1 by default).
    pub fn granularity(mut self, rows: usize) -> Self {
        self.hints.granularity[0] = rows.max(1);
        self
    }

    /// Treats denormal floating-point numbers as zero in the kernel, on all threads that run it: see
    /// [`flush_denormals`](anabranch_par::flush_denormals()).
    pub fn flush_denormals(mut self) -> Self {
        self.hints.flush_denormals = true;
        self
    }

    /// Submits the task. `kernel` is called once for each chunk, on all threads of the runtime, when all tasks that it depends
    /// on are done. A panic fails the task.
    ///
    /// Blocks while the [limit of tasks in flight](crate::Builder::max_in_flight) is reached.
    ///
    /// # Errors
    /// If the declaration is wrong: see [`Error`]. Nothing is submitted then.
    pub fn kernel<F>(self, kernel: F) -> Result<TaskHandle, Error>
    where
        L: AccessList<K> + KernelAccessList,
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
    {
        self.submit_kernel(kernel, |_, _| Ok(()))
    }

    /// Submits a recorded kernel: `closure` runs once, now, on symbolic values, and what it has recorded runs for each point of the
    /// index space. It gets an [`Input`](crate::recorded::Input) for each read, an [`Output`](crate::recorded::Output) for each write and
    /// an [`InputOutput`](crate::recorded::InputOutput) for each update. A write or update is `one_to_one()`.
    ///
    /// The recording is checked now: an error names the line that takes an element which the task does not declare. It runs in vector
    /// instructions, without a check for each element. Other literals in the same closure are no other program, so nothing is prepared anew for them.
    /// The guide has [a page](crate::guide::recorded_kernels) on recorded kernels.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let u = rt.buffer_from(&[1.0_f32, 2.0, 4.0, 8.0])?;
    /// let mean = rt.buffer([4]);
    /// rt.task("mean")
    ///     .over([4])
    ///     .read(&u, neighborhood([1]))
    ///     .write(&mean, one_to_one())
    ///     .each(|(u, mean)| mean.set((u.at_clamped([-1]) + u.at_clamped([1])) / 2.0))?;
    /// assert_eq!(rt.fence(&mean)?.wait()?.as_slice(), [1.5, 2.5, 5.0, 6.0]);
    /// # Ok::<(), anabranch::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`kernel`](Self::kernel), and if the recording is wrong: [`Error::Record`], or [`Error::Declaration`] if it takes elements that
    /// the task does not declare.
    pub fn each(self, closure: impl for<'t> FnOnce(L::Symbols<'t>)) -> Result<TaskHandle, Error>
    where
        L: RecordedAccessList<K> + KernelAccessList,
    {
        let core = self.core;
        let recording = recorded::record::<K, L>(&self.label, closure).map_err(|error| core.refuse(error))?;
        let program = core.programs.of(&recording);
        let function = recorded::function::<K, L>(program, &recording);
        self.submit_kernel(function, |declaration, bound| {
            let declared =
                recorded::Declared::<K, L> { task: declaration.task, recording: &recording, bound };
            let whole = declared.check_whole(declaration.whole.range, &declaration.accesses);
            whole.map_err(|error| core.refuse(error))?;
            // Perhaps only this node finds a mistake in its chunks. Then the others get the reason, with the end of the run.
            declared.check_chunks(declaration.chunks).map_err(|error| core.give_up(error))
        })
    }

    /// Submits a kernel whose bound accesses pass a check.
    fn submit_kernel<F>(
        mut self,
        kernel: F,
        check: impl FnOnce(&Declaration<'_, K>, &L::Bound) -> Result<(), Error>,
    ) -> Result<TaskHandle, Error>
    where
        L: AccessList<K>,
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
    {
        if self.hints.blocking {
            let (value, range) =
                ("a kernel that blocks".into(), "`host`: a thread that runs kernels must not block");
            return Err(Error::Setting { setting: "the task", value, range });
        }
        if L::REDUCES {
            self.hints.pieces = 1;
            let leaves = || default_leaves(&self.space.cast(), self.accesses.reduced());
            self.hints.chunks = Some(self.hints.chunks.unwrap_or_else(leaves));
        } else if self.hints.pieces > 1 {
            return self.kernel_in_pieces(kernel, check);
        }
        let chunks = self.split();
        let mut declaration =
            Declaration::new(self.core, self.group, &self.label, Chunk::whole(self.space), &chunks);
        self.hints.record(&mut declaration, Work::Kernel { space: self.space.cast() });
        let bound = self.accesses.declare(&mut declaration).map_err(|error| self.core.refuse(error))?;
        check(&declaration, &bound)?;
        let flush_denormals = self.hints.flush_denormals;
        let body = |bound: Result<_, Box<Error>>| {
            KernelBody::new(Kernel::<K, L, F> {
                bound: bound.map_err(|error| Box::new(Cause::from(error))),
                chunks: Chunks::from_slice(&chunks),
                function: kernel,
                flush_denormals,
            })
        };
        let node = launch::<K, L, _>(&mut declaration, bound, Place::Compute, false, body)?;
        Ok(TaskHandle::new(smallvec![node]))
    }

    /// Submits a kernel that is ordered piece by piece: see [`kernel`](Self::kernel).
    fn kernel_in_pieces<F>(
        self,
        function: F,
        check: impl FnOnce(&Declaration<'_, K>, &L::Bound) -> Result<(), Error>,
    ) -> Result<TaskHandle, Error>
    where
        L: AccessList<K>,
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
    {
        let (chunks, pieces) = self.split_in_pieces();
        let mut declaration =
            Declaration::new(self.core, self.group, &self.label, Chunk::whole(self.space), &chunks);
        declaration.pieces = pieces;
        self.hints.record(&mut declaration, Work::Kernel { space: self.space.cast() });
        let bound = self.accesses.declare(&mut declaration).map_err(|error| self.core.refuse(error))?;
        check(&declaration, &bound)?;
        let flush_denormals = self.hints.flush_denormals;
        let nodes = launch_pieces::<K, L, _, _>(&mut declaration, bound, |bound| {
            let bound = bound.map_err(|error| Box::new(Cause::from(error)));
            let kernel = Arc::new(Kernel::<K, L, F> {
                bound,
                chunks: Chunks::from_slice(&chunks),
                function,
                flush_denormals,
            });
            move |chunks| PieceBody::new(Arc::clone(&kernel), chunks)
        })?;
        Ok(TaskHandle::new(nodes))
    }

    /// The chunks of this node, and the pieces that they form.
    fn split_in_pieces(&self) -> (Chunks<K>, Vec<Piece>) {
        let Hints { chunks, pieces, granularity, split, .. } = self.hints;
        let work = Work::Kernel { space: self.space.cast() };
        let boxes = match self.core.several_nodes() {
            Some(nodes) => nodes.pieces(&work, &self.hints.for_nodes(self.core.nodes())),
            None if self.space.is_empty() => vec![self.space.cast()],
            None => pieces_of_node(&work, &self.hints.for_nodes(1), NodeId(0), 1, None).collect(),
        };
        let each = match (chunks, self.core.threads()) {
            (Some(chunks), _) => chunks.div_ceil(pieces),
            (None, threads) if boxes.len() >= threads => 1,
            (None, threads) => (threads * CHUNKS_PER_THREAD).div_ceil(boxes.len().max(1)),
        };
        let (mut all, mut pieces) = (Chunks::new(), Vec::with_capacity(boxes.len()));
        for piece in boxes {
            let first = all.len();
            let ranges = split(&piece.cast(), each, granularity);
            all.extend(ranges.into_iter().map(|range| Chunk { range, global: self.space }));
            pieces.push(Piece::new(first..all.len()));
        }
        (all, pieces)
    }

    fn split(&self) -> Chunks<K>
    where
        L: AccessList<K>,
    {
        let count = self.hints.chunks.unwrap_or(match self.core.threads() {
            1 => 1,
            threads => threads * CHUNKS_PER_THREAD,
        });
        if let Some(nodes) = self.core.several_nodes() {
            return self.split_on_nodes(nodes, count);
        }
        if count == 1 && !self.space.is_empty() {
            return smallvec![Chunk::whole(self.space)];
        }
        // The leaves of a reduction are bands of rows, here as on many nodes.
        let ranges = match L::REDUCES {
            true => split_1d(&self.space, count, self.hints.granularity[0]),
            false => (self.hints.split)(&self.space, count, self.hints.granularity),
        };
        ranges.into_iter().map(|range| Chunk { range, global: self.space }).collect()
    }

    /// The chunks of this node. `count` is the number of chunks on one node.
    #[cold]
    fn split_on_nodes(&self, nodes: &Nodes, count: usize) -> Chunks<K>
    where
        L: AccessList<K>,
    {
        let Hints { chunks, granularity, split, .. } = self.hints;
        let work = Work::Kernel { space: self.space.cast() };
        let Part { chunk, leaves } = nodes.part(&work, &self.hints.for_nodes(self.core.nodes()), L::REDUCES);
        let Some(range) = chunk.map(|chunk| chunk.cast()) else { return Chunks::new() };
        let ranges = match L::REDUCES {
            // The leaves of this node: of leaves of two sizes, the larger ones come first, here as in the whole index space.
            true => split_1d(&range, leaves.len(), granularity[0]),
            false => {
                let nodes = if chunks.is_some() { self.core.nodes() } else { 1 };
                split(&range, count.div_ceil(nodes.into()), granularity)
            }
        };
        ranges.into_iter().map(|range| Chunk { range, global: self.space }).collect()
    }
}

macro_rules! tiles {
    ($($rank:literal),*) => {$(
        impl<L> TaskBuilder<'_, $rank, Over, L> {
            /// Splits along the first two dimensions, into tiles that are as square as possible, with sides that are multiples of
            /// `rows` and `cols`. By default, and always for tasks with reductions, the split is along the first dimension
            /// only.
            pub fn tiles(mut self, rows: usize, cols: usize) -> Self {
                self.hints.granularity = [rows.max(1), cols.max(1)];
                self.hints.split = split_2d;
                self.hints.tiles = true;
                self
            }
        }
    )*};
}

tiles!(2, 3);
