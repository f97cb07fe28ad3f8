//! Kernels: how they are split into chunks and pieces, and how they are submitted.

use super::{
    TaskBuilder, hints::Hints, index_space::Over, kernel_place::KernelPlace, on_device::RecordingOnDevice,
    tile::Tile,
};
use crate::{
    data::{buffer::Buffer, element::Element},
    device::Device,
    error::{Cause, Error},
    execute::{Nodes, Place, TaskHandle},
    submit::{
        access::{
            list::{AccessList, Append, KernelAccessList},
            operator::Operator,
            reduce::Reduce,
        },
        launch::{
            body::{Chunks, Kernel, KernelBody, PieceBody},
            declaration::{Declaration, Piece},
            launch, launch_pieces,
            leaves::leaves,
        },
        recorded::{self, access::RecordedAccessList},
    },
};
use anabranch_graph::command::{NodeId, Part, Work, default_leaves, pieces_of_node};
use anabranch_grid::{Chunk, split_1d, split_2d};
use anabranch_kernel::Recording;
use smallvec::smallvec;
use std::sync::Arc;

/// The default number of chunks of a kernel for each thread. It is more than one so that other threads take
/// over a part of the work of a thread that is held up, by another program for example.
const CHUNKS_PER_THREAD: usize = 4;

impl<'rt, const K: usize, L> TaskBuilder<'rt, K, Over, L> {
    /// Splits the index space into at most this many chunks (by default four for each thread, or one if there
    /// is one thread); chunks are never empty. With several nodes or [pieces](Self::pieces), each node or
    /// piece gets an equal share of this number, rounded up. The results of a kernel must not depend on the
    /// number of chunks.
    pub fn chunks(mut self, chunks: usize) -> Self {
        self.hints.chunks = Some(chunks.max(1));
        self
    }

    /// Orders the kernel piece by piece: its index space is cut along the first dimension into at most this
    /// many pieces on all nodes together, rounded up to a multiple of the number of nodes, and each piece
    /// begins as soon as its own inputs are there. By default a kernel is one piece.
    ///
    /// A stencil in pieces flows: a piece of the next step begins when the neighbouring pieces of this step
    /// are done, while others still run. Each piece costs as much as a task, so a piece should take some ten
    /// microseconds at least. Chunks are parts of pieces: by default a piece is one chunk if there are as
    /// many pieces as threads. The results must not depend on the number of pieces.
    ///
    /// A kernel with a reduction is one piece in any case, and so is a host task. The handle of the task is
    /// one for all pieces. Of several pieces that fail, each is reported.
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

    /// Declares that the kernel combines values into the elements of `buffer`. The results overwrite all
    /// elements; to include the current contents, see [`reduce_into`](Self::reduce_into).
    ///
    /// The results have the same bits on any number of threads and nodes. The chunks of the kernel are the
    /// leaves of the tree in which partial results are combined. There are at most 64 chunks, and of a large
    /// index space one for every 32,768 points (for every 512 points per element of the largest such buffer,
    /// if these are more), unless [`chunks`](Self::chunks) says otherwise. A [recorded kernel](Self::each)
    /// has [another tree](crate::guide::recorded_kernels#reductions), which does not depend on the chunks.
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

    /// Like [`reduce`](Self::reduce), with the current contents of the buffer as the first value of each
    /// element.
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

    /// Makes the number of rows of each chunk but the last a multiple of this number (1 by default).
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

    /// Lets a device that runs the [recorded kernel](Self::each) round each product of floats by itself, as
    /// the processor does. Otherwise it may make one operation of a product and a sum, with one rounding.
    /// With `+`, `-` and `*` alone the kernel has the bits of the processor then, up to denormal numbers. The
    /// processor always computes so. The text of a [shader](Self::shader) stays as it is.
    ///
    /// It costs a sum for each product, on most devices as a part of the product.
    pub fn precise(mut self) -> Self {
        self.hints.precise = true;
        self
    }

    /// Sets the device that runs the task, which must be a recorded kernel ([`each`](Self::each)) or have a
    /// [shader](Self::shader). By default the [device of the runtime](crate::Builder::device) runs it if
    /// there is one that can, and otherwise the threads of the runtime.
    ///
    /// What the task reads and the device lacks is copied to it before, and what a task on the host reads
    /// later is copied back. A device runs the whole index space at once, so it ignores chunks and, on one
    /// node, pieces. With several nodes each node passes a device of its own, which runs the pieces of that
    /// node, or its part of a reduction.
    ///
    /// ```
    /// use anabranch::{
    ///     device::{Device, Simulated},
    ///     prelude::*,
    /// };
    /// use std::sync::Arc;
    ///
    /// let device: Arc<dyn Device> = Arc::new(Simulated::new());
    /// let rt = Runtime::new()?;
    /// let u = rt.buffer_from(&[1.0_f32, 2.0, 3.0])?;
    /// rt.task("double").over([3]).on(&device).update(&u, one_to_one()).each(|(u,)| u.set(u.here() * 2.0))?;
    /// assert_eq!(rt.fence(&u)?.wait()?.as_slice(), [2.0, 4.0, 6.0]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn on(mut self, device: &Arc<dyn Device>) -> Self {
        self.place = KernelPlace::Device(Arc::clone(device));
        self
    }

    /// Lets the threads of the runtime run the task, also if the runtime has a
    /// [device](crate::Builder::device).
    pub fn on_host(mut self) -> Self {
        self.place = KernelPlace::Host;
        self
    }

    /// Submits the task. `kernel` is called once for each chunk, on all threads of the runtime, when all
    /// tasks that it depends on are done. A panic fails the task.
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

    /// Submits a recorded kernel: `closure` runs once, now, on symbolic values, and what it has recorded runs
    /// for each point of the index space. The closure gets an [`Input`](crate::recorded::Input) for each
    /// read, an [`Output`](crate::recorded::Output) for each write, an
    /// [`InputOutput`](crate::recorded::InputOutput) for each update and an
    /// [`Accumulator`](crate::recorded::Accumulator) for each reduction. A write or update is `one_to_one()`.
    /// A read may be of a buffer of another rank than the index space.
    ///
    /// The recording is checked now: an error names the line that takes an element which the task does not
    /// declare. It runs in vector instructions, without a check for each element. If the same closure is
    /// submitted again with other literals, the runtime uses the program that it has, and prepares nothing.
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
    /// As [`kernel`](Self::kernel), and if the recording is wrong: [`Error::Record`], or
    /// [`Error::Declaration`] if it takes elements that the task does not declare.
    pub fn each(mut self, closure: impl for<'t> FnOnce(L::Symbols<'t>)) -> Result<TaskHandle, Error>
    where
        L: RecordedAccessList<K> + KernelAccessList,
    {
        let recording = self.recording(closure)?;
        self.submit_recording(&recording)
    }

    /// Runs the closure of a recorded kernel, and cuts the index space as the recording requires.
    pub(in crate::submit) fn recording(
        &mut self,
        closure: impl for<'t> FnOnce(L::Symbols<'t>),
    ) -> Result<Recording, Error>
    where
        L: RecordedAccessList<K>,
    {
        let core = self.core;
        let recording = recorded::record(&self.label, &self.accesses, closure);
        let mut recording = recording.map_err(|error| core.refuse(error))?;
        if self.hints.precise && self.device().is_some() {
            recording = recording.precise();
        }
        if L::REDUCES {
            // On all nodes alike, whether they compute on devices or on the host.
            self.hints.cut_at_bands(&self.label, leaves(&self.space)).map_err(|error| core.refuse(error))?;
            if core.several_nodes().is_some() {
                recording = recording.ending_at_leaves();
            }
        }
        Ok(recording)
    }

    /// Submits a recorded kernel: see [`each`](Self::each).
    pub(in crate::submit) fn submit_recording(self, recording: &Recording) -> Result<TaskHandle, Error>
    where
        L: RecordedAccessList<K> + KernelAccessList,
    {
        if let Some(chosen) = self.program_on_device(recording)? {
            return self.launch_on(chosen, &RecordingOnDevice(recording));
        }
        let core = self.core;
        let program = core.programs.of(recording);
        let function = recorded::function::<K, L>(program, recording);
        self.submit_kernel(function, |declaration, bound| {
            recorded::check_recording::<K, L>(core, recording, declaration, bound)
        })
    }

    /// Submits a kernel whose bound accesses pass a check.
    pub(in crate::submit) fn submit_kernel<F>(
        mut self,
        kernel: F,
        check: impl FnOnce(&Declaration<'_, K>, &L::Bound) -> Result<(), Error>,
    ) -> Result<TaskHandle, Error>
    where
        L: AccessList<K>,
        F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
    {
        self.check_is_on_host()?;
        if self.hints.blocking {
            let (value, range) =
                ("a kernel that blocks".into(), "`host`: a thread that runs kernels must not block");
            return Err(Error::of_setting(&self.label, "the task", value, range));
        }
        self.choose_leaves();
        if self.hints.pieces > 1 {
            return self.kernel_in_pieces(kernel, check);
        }
        let chunks = self.split(match self.core.threads() {
            1 => 1,
            threads => threads * CHUNKS_PER_THREAD,
        });
        let mut declaration =
            Declaration::new(self.core, self.group, &self.label, Chunk::whole(self.space), &chunks);
        declaration.has_leaves = self.hints.has_bands();
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
        let nodes = launch_pieces::<K, L, _, _>(&mut declaration, bound, Place::Compute, |bound| {
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

    /// Sets the number of leaves of a reduction, which are its chunks. It does not depend on the threads.
    pub(in crate::submit) fn choose_leaves(&mut self)
    where
        L: AccessList<K>,
    {
        if !L::REDUCES {
            return;
        }
        self.hints.pieces = 1;
        if !self.hints.has_bands() {
            let leaves = || default_leaves(&self.space.cast(), self.accesses.reduced());
            self.hints.chunks = Some(self.hints.chunks.unwrap_or_else(leaves));
        }
    }

    /// The chunks, this many by default.
    pub(in crate::submit) fn split(&self, default: usize) -> Chunks<K>
    where
        L: AccessList<K>,
    {
        let count = self.hints.chunks.unwrap_or(default);
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
            // The leaves of this node: of leaves of two sizes, the larger ones come first, here as in the
            // whole index space.
            true if !self.hints.has_bands() => split_1d(&range, leaves.len(), granularity[0]),
            reduces => {
                let nodes = if chunks.is_some() { self.core.nodes() } else { 1 };
                let count = count.div_ceil(nodes.into());
                if reduces {
                    split_1d(&range, count, granularity[0])
                } else {
                    split(&range, count, granularity)
                }
            }
        };
        ranges.into_iter().map(|range| Chunk { range, global: self.space }).collect()
    }
}

macro_rules! tiles {
    ($($rank:literal),*) => {$(
        impl<L> TaskBuilder<'_, $rank, Over, L> {
            /// Splits along the first two dimensions, into tiles that are as square as possible, with sides
            /// that are multiples of `rows` and `cols`. By default, and always for tasks with reductions, the
            /// split is along the first dimension only.
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
