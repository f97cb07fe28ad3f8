//! Submitting a task: the typed builder from `rt.task("name")` to `.kernel(…)` or `.host(…)`.

use crate::{
    access::{Access, AccessList, Append, Effect, KernelAccessList, Read, Write},
    body::{Chunks, HostBody, KernelBody, Tiled},
    buffer::Buffer,
    core::Core,
    declare::Declaration,
    element::Element,
    error::{Error, HostError, HostResult, TaskLabel},
    handle::TaskHandle,
    host_object::HostObject,
    node::Place,
    reduce::{self, Operator, Reduce},
    tile::Tile,
};
use anabranch_graph::{
    Mode,
    command::{NodeId, Tiling, Work},
};
use anabranch_grid::{Chunk, Extent, GridBox, RangeMapper, split_1d, split_2d};
use std::{borrow::Cow, marker::PhantomData, panic::Location, sync::Arc};

/// For each thread a kernel has this many chunks, unless it is told otherwise: so that a thread that is held up (by
/// another program, say) leaves some of its work to the others.
const CHUNKS_PER_THREAD: usize = 4;

/// A task that has a name and as yet neither index space nor accesses: see [`Runtime::task`](crate::Runtime::task).
#[derive(Debug)]
#[must_use = "a task is submitted by `kernel` or `host`"]
pub struct NewTask<'rt> {
    core: &'rt Arc<Core>,
    label: TaskLabel,
}

impl<'rt> NewTask<'rt> {
    pub(crate) fn new(
        core: &'rt Arc<Core>,
        name: impl Into<Cow<'static, str>>,
        location: &'static Location<'static>,
    ) -> Self {
        Self { core, label: TaskLabel { name: name.into(), location } }
    }

    /// The index space: the task is a [kernel](TaskBuilder::kernel), called once for each of the chunks into which this is
    /// split, or a [host task](TaskBuilder::host), called on each node for that node's part.
    pub fn over<const K: usize>(self, space: impl IndexSpace<K>) -> TaskBuilder<'rt, K, Over, ()> {
        self.begin(space.index_space())
    }

    /// The task is a host task: its function is called once, on a thread where it may block.
    pub fn once(self) -> TaskBuilder<'rt, 0, Once, ()> {
        self.begin(GridBox::full([]))
    }

    /// The task is a host task whose function is called once on every node: for what all nodes do together. (There is one
    /// node, until there are more.) Its index space is that of the nodes.
    pub fn collective(self) -> TaskBuilder<'rt, 1, Collective, ()> {
        self.begin(GridBox::full([1]))
    }

    fn begin<const K: usize, S>(self, space: GridBox<K>) -> TaskBuilder<'rt, K, S, ()> {
        TaskBuilder {
            core: self.core,
            label: self.label,
            space,
            hints: Hints::default(),
            accesses: (),
            _kind: PhantomData,
        }
    }
}

/// What [`over`](NewTask::over) takes: an extent (`[rows, cols]`) or a box.
pub trait IndexSpace<const K: usize> {
    /// The points.
    fn index_space(self) -> GridBox<K>;
}

impl<const K: usize> IndexSpace<K> for [usize; K] {
    fn index_space(self) -> GridBox<K> {
        GridBox::full(self)
    }
}

impl<const K: usize> IndexSpace<K> for Extent<K> {
    fn index_space(self) -> GridBox<K> {
        GridBox::full(self)
    }
}

impl<const K: usize> IndexSpace<K> for GridBox<K> {
    fn index_space(self) -> GridBox<K> {
        self
    }
}

/// The kind of a task with an index space: a kernel, or a host task in parts.
#[derive(Debug)]
pub struct Over;

/// The kind of a task that is executed once on every node: a host task.
#[derive(Debug)]
pub struct Collective;

/// The kind of a task that is executed once: a host task.
#[derive(Debug)]
pub struct Once;

/// How a kernel's index space is split: box, number of chunks, granularity along the first two dimensions.
type Split<const K: usize> = fn(&GridBox<K>, usize, [usize; 2]) -> Vec<GridBox<K>>;

/// How a kernel is to be run.
#[derive(Clone, Copy, Debug)]
struct Hints<const K: usize> {
    chunks: Option<usize>,
    granularity: [usize; 2],
    split: Split<K>,
    flush_denormals: bool,
    priority: i32,
    /// For the record.
    tiles: bool,
    node: Option<u16>,
}

impl<const K: usize> Default for Hints<K> {
    fn default() -> Self {
        let rows: Split<K> = |range, count, granularity| split_1d(range, count, granularity[0]);
        Self {
            chunks: None,
            granularity: [1; 2],
            split: rows,
            flush_denormals: false,
            priority: 0,
            tiles: false,
            node: None,
        }
    }
}

impl<const K: usize> Hints<K> {
    /// Tells the recorder, where there is one.
    fn tell(&self, declaration: &mut Declaration<'_, K>, work: Work) {
        let Some(told) = &mut declaration.told else { return };
        told.work = work;
        told.hints.granularity = self.granularity;
        told.hints.tiling = if self.tiles { Tiling::Tiles } else { Tiling::Rows };
        told.hints.node = self.node.map(NodeId);
        told.hints.leaves = self.chunks.unwrap_or(told.hints.leaves);
    }
}

/// A task that is being declared: its accesses so far are `L`, its kind is `S`.
///
/// Accesses reach the kernel or host function as a tuple of views, in the order of their declaration:
/// `&`[`ReadView`](crate::ReadView) for a read, `&mut` [`WriteView`](crate::WriteView) for a write or update, `&mut`
/// [`Reduction`](crate::Reduction) for a reduction, `&mut T` for a sequential or exclusive effect, `&T` for a relaxed one.
#[derive(Debug)]
#[must_use = "a task is submitted by `kernel` or `host`"]
pub struct TaskBuilder<'rt, const K: usize, S, L> {
    core: &'rt Arc<Core>,
    label: TaskLabel,
    space: GridBox<K>,
    hints: Hints<K>,
    accesses: L,
    _kind: PhantomData<S>,
}

impl<'rt, const K: usize, S, L> TaskBuilder<'rt, K, S, L> {
    /// Declares that each chunk reads what `mapper` gives for it.
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

    /// Declares that each chunk overwrites *all* of what `mapper` gives for it, without needing what was there.
    /// No element may be written by two chunks.
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
        self.append(Write { buffer: buffer.clone(), mapper, mode: Mode::Write })
    }

    /// Declares that each chunk reads and changes what `mapper` gives for it. No element may be changed by two chunks.
    pub fn update<T, const D: usize, M>(
        self,
        buffer: &Buffer<T, D>,
        mapper: M,
    ) -> TaskBuilder<'rt, K, S, L::Longer>
    where
        T: Element,
        M: RangeMapper<K, D> + 'static,
        L: Append<Write<T, D, M>>,
    {
        self.append(Write { buffer: buffer.clone(), mapper, mode: Mode::Update })
    }

    /// Declares an effect on a host object, ordered against other effects on the same object as `order` says:
    /// [`sequential()`](crate::sequential), [`exclusive()`](crate::exclusive) or [`relaxed()`](crate::relaxed). For host
    /// tasks: a kernel runs on several threads at once, and cannot have effects.
    pub fn effect<T, O>(self, object: &HostObject<T>, order: O) -> TaskBuilder<'rt, K, S, L::Longer>
    where
        Effect<T, O>: Access<K>,
        L: Append<Effect<T, O>>,
    {
        let _ = order;
        self.append(Effect { object: object.clone(), _order: PhantomData })
    }

    fn append<A>(self, access: A) -> TaskBuilder<'rt, K, S, L::Longer>
    where
        L: Append<A>,
    {
        let Self { core, label, space, hints, accesses, _kind } = self;
        TaskBuilder { core, label, space, hints, accesses: accesses.append(access), _kind }
    }
}

impl<'rt, L> TaskBuilder<'rt, 0, Once, L> {
    /// Of tasks that could run, but not at the same time, those with a higher priority come first (0 by default), then
    /// older ones. A task that has been passed over for long comes before either.
    pub fn priority(mut self, priority: i32) -> Self {
        self.hints.priority = priority;
        self
    }

    /// On which node the task is executed (0 by default). There is one node, until there are more; a
    /// [dry run](crate::Builder::dry_run) has as many as it is told.
    ///
    /// # Errors
    /// [`Error::Setting`] if there is no such node.
    pub fn on_node(mut self, node: u16) -> Result<Self, Error> {
        let nodes = self.core.nodes();
        if node >= nodes {
            let range = "a node that there is: the first is 0";
            return Err(Error::Setting { setting: "the node of a task", value: node.to_string(), range });
        }
        self.hints.node = Some(node);
        Ok(self)
    }

    /// Submits the task: `function` is called once, when everything before it is done, on a thread of its own kind,
    /// where it may block. It may return a `Result`; an error (or a panic) fails the task.
    ///
    /// Blocks while as many tasks are in flight as the runtime's [lead](crate::Builder::lead) allows.
    ///
    /// # Errors
    /// If the declaration makes no sense: see [`Error`]. Nothing is submitted then.
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
    /// Submits the task: `function` is called once on every node, with that node's point of the index space, as
    /// [`host`](TaskBuilder::host) of a task that is executed once.
    ///
    /// # Errors
    /// If the declaration makes no sense: see [`Error`]. Nothing is submitted then.
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
    /// Submits the task as a host task: `function` is called once on each node for that node's part of the index space (there
    /// is one node, until there are more, and its part is all of it), on a thread where it may block.
    ///
    /// # Errors
    /// If the declaration makes no sense: see [`Error`]. Nothing is submitted then.
    pub fn host<F, R>(self, function: F) -> Result<TaskHandle, Error>
    where
        L: AccessList<K>,
        F: for<'v> FnOnce(&Tile<K>, L::Views<'v>) -> R + Send + 'static,
        R: HostResult,
    {
        let work = Work::HostChunks { space: self.space.cast() };
        self.submit_host(work, |tile, views| function(tile, views).into_result())
    }
}

impl<const K: usize, S, L: AccessList<K>> TaskBuilder<'_, K, S, L> {
    fn submit_host<F>(self, work: Work, function: F) -> Result<TaskHandle, Error>
    where
        F: for<'v> FnOnce(&Tile<K>, L::Views<'v>) -> Result<(), HostError> + Send + 'static,
    {
        let whole = Chunk::whole(self.space);
        let mut declaration = Declaration::new(self.core, &self.label, whole, std::slice::from_ref(&whole));
        declaration.priority = self.hints.priority;
        self.hints.tell(&mut declaration, work);
        let bound = self.accesses.declare(&mut declaration)?;
        let node = self.core.submit::<K, L, _>(&declaration, bound, Place::Host, |bound| {
            HostBody::<K, L, F>::new(whole, bound, function)
        })?;
        Ok(TaskHandle::new(node))
    }
}

impl<'rt, const K: usize, L> TaskBuilder<'rt, K, Over, L> {
    /// Splits the index space into this many chunks (four for each thread by default), at most: chunks are never empty.
    /// What a kernel computes must not depend on it.
    pub fn chunks(mut self, chunks: usize) -> Self {
        self.hints.chunks = Some(chunks.max(1));
        self
    }

    /// Declares that the kernel combines values into the elements of `buffer`, all of which are overwritten with the
    /// results. See [`reduce_into`](Self::reduce_into) for going on from what is there.
    ///
    /// The results have the same bits on any number of threads: the kernel's chunks, 64 at most unless
    /// [`chunks`](Self::chunks) says otherwise, give the shape of the tree in which they are combined.
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

    /// Like [`reduce`](Self::reduce), with what the buffer holds already as the first value of each element.
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

    /// Splits between multiples of this many rows (1 by default).
    pub fn granularity(mut self, rows: usize) -> Self {
        self.hints.granularity[0] = rows.max(1);
        self
    }

    /// Treats denormal floating-point numbers as zero while the kernel runs, on every thread that runs it: see
    /// [`flush_denormals`](anabranch_par::flush_denormals()).
    pub fn flush_denormals(mut self) -> Self {
        self.hints.flush_denormals = true;
        self
    }

    /// Submits the task: `kernel` is called for each chunk, on all threads of the runtime, when everything before it is
    /// done. A panic fails the task.
    ///
    /// Blocks while as many tasks are in flight as the runtime's [lead](crate::Builder::lead) allows.
    ///
    /// # Errors
    /// If the declaration makes no sense: see [`Error`]. Nothing is submitted then.
    pub fn kernel<F>(self, kernel: F) -> Result<TaskHandle, Error>
    where
        L: AccessList<K> + KernelAccessList,
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
    {
        let chunks = self.split();
        let mut declaration = Declaration::new(self.core, &self.label, Chunk::whole(self.space), &chunks);
        self.hints.tell(&mut declaration, Work::Kernel { space: self.space.cast() });
        let bound = self.accesses.declare(&mut declaration)?;
        let flush = self.hints.flush_denormals;
        let node = self.core.submit::<K, L, _>(&declaration, bound, Place::Compute, |bound| {
            KernelBody::new(Tiled::<K, L, F> { bound, chunks: chunks.clone(), kernel, flush })
        })?;
        Ok(TaskHandle::new(node))
    }

    fn split(&self) -> Chunks<K>
    where
        L: AccessList<K>,
    {
        let count = self.hints.chunks.unwrap_or(match self.core.threads() {
            // The shape of their tree must not depend on the threads.
            _ if L::REDUCES => reduce::CHUNKS,
            1 => 1,
            threads => threads * CHUNKS_PER_THREAD,
        });
        // Leaves of a reduction are rows, here as on many nodes.
        let ranges = match L::REDUCES {
            true => split_1d(&self.space, count, self.hints.granularity[0]),
            false => (self.hints.split)(&self.space, count, self.hints.granularity),
        };
        ranges.into_iter().map(|range| Chunk { range, global: self.space }).collect()
    }
}

macro_rules! tiles {
    ($($rank:literal),*) => {$(
        impl<L> TaskBuilder<'_, $rank, Over, L> {
            /// Splits along the first two dimensions, into tiles as square as possible, with sides in multiples of
            /// `rows` and `cols`; otherwise, and for tasks with reductions, the split is along the first dimension only.
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
