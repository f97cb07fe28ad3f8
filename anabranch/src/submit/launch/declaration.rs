//! The declaration of a task: the regions of its accesses, computed by the range mappers for every chunk, and
//! checked.
//!
//! # Mappers are not trusted
//! A range mapper is code of the program. It may answer differently at another call, give a part of a chunk
//! more than the chunk, leave the buffer, or panic. None of this can make two users of an element meet:
//!
//! - A mapper is called once for the whole index space and once for each chunk, before any lock is taken. The
//!   *answers* are kept and checked; the views of the task use the same answers, and the mapper is not called
//!   again for them.
//! - Every answer lies inside the buffer ([`Mistake::OutsideBuffer`]).
//! - The graph gets one region for each access. It contains the answers for all chunks: the answer for the
//!   whole index space, which is checked to contain them ([`Mistake::NotMonotonic`]), or for a write perhaps
//!   their union. So the order of tasks, and the graph's check that two accesses of one task have no element
//!   in common, hold for what the chunks really access.
//! - Every answer has the shape that the type of the mapper promises ([`Mistake::OtherShape`]). Views rely on
//!   it when they check accesses.
//! - The answers for two chunks of a write have no element in common ([`Mistake::OverlappingWrites`]).
//! - A mapper that panics unwinds through the submission, before the task is in the graph.
//! - In a dry run the recorder calls the mapper again, for the chunks of each node. These answers are used
//!   for the commands that are counted and drawn, never for an access to memory.

use super::leaves::leaves;
use crate::{
    data::{
        bound::{BoundBuffer, Regions},
        buffer::{Buffer, BufferInner},
        cluster_object::Kept,
        element::Element,
        host_object::ObjectInner,
        owner::{self, Owner},
        partials::{Partials, Shares},
        stored::{Touch, Touches},
    },
    error::{DeclarationError, Error, Mistake},
    execute::{Core, GroupHandle, Nodes},
    label::{Label, TaskLabel},
    observe::TaskRecord,
};
use anabranch_graph::{
    Access, BufferId, Effect, GraphError, Mode, Order,
    command::{BufferAccess, CommandError, Reduction, erase},
};
use anabranch_grid::{Chunk, GridBox, RangeMapper, Region, RegionShape};
use smallvec::{SmallVec, smallvec};
use std::{
    ops::Range,
    sync::{Arc, Weak},
};

/// What the type of a mapper promises of all of its regions.
#[derive(Clone, Copy)]
struct Promise<const D: usize> {
    is_kept: fn(&[GridBox<D>]) -> bool,
    /// In words.
    shape: &'static str,
}

impl<const D: usize> Promise<D> {
    #[inline]
    fn of<M: RangeMapper<K, D>, const K: usize>(_: &M) -> Self {
        Self { is_kept: M::Shape::fits, shape: M::Shape::WORDS }
    }
}

/// The declaration of a task, while its accesses are collected.
#[derive(Debug)]
pub struct Declaration<'a, const K: usize> {
    pub(in crate::submit) core: &'a Arc<Core>,
    pub(in crate::submit) group: Option<&'a GroupHandle>,
    pub(in crate::submit) task: &'a TaskLabel,
    pub(in crate::submit) whole: Chunk<K>,
    pub(in crate::submit) chunks: &'a [Chunk<K>],
    pub(in crate::submit) accesses: SmallVec<[Access; 2]>,
    /// The positions of those of `accesses` that are reductions.
    pub(in crate::submit) reductions: SmallVec<[usize; 1]>,
    pub(in crate::submit) effects: SmallVec<[Effect; 2]>,
    pub(in crate::submit) priority: i32,
    /// Whether the task has a communicator.
    communicates: bool,
    /// The pieces of a kernel that is ordered piece by piece; empty for other tasks.
    pub(in crate::submit) pieces: Vec<Piece>,
    /// Whether the chunks of a reduction consist of the [leaves](anabranch_kernel::Leaves) of a recorded
    /// kernel, and are no leaves themselves.
    pub(in crate::submit) has_leaves: bool,
    /// In a recorded runtime and with several nodes, facts for the command graph.
    pub(in crate::submit) record: Option<Box<TaskRecord>>,
}

/// A piece of a kernel, while its accesses are collected.
#[derive(Debug)]
pub(in crate::submit) struct Piece {
    /// Its chunks, of all chunks of the kernel on this node.
    pub(in crate::submit) chunks: Range<usize>,
    pub(in crate::submit) accesses: SmallVec<[Access; 2]>,
}

impl Piece {
    pub(in crate::submit) fn new(chunks: Range<usize>) -> Self {
        Self { chunks, accesses: SmallVec::new() }
    }

    /// Adds an access. `regions` are those of all chunks of the kernel.
    fn access<const D: usize>(&mut self, buffer: BufferId, regions: &[Region<D>], mode: Mode) {
        let region = match &regions[self.chunks.clone()] {
            [only] => only.cast(),
            several => Region::from_boxes(several.iter().flat_map(|region| region.boxes()).copied()).cast(),
        };
        self.accesses.push(Access { buffer, region, mode });
    }
}

impl Piece {
    /// With several nodes: what the piece accesses.
    pub(in crate::submit) fn touches(&self) -> Touches {
        let touch = |Access { buffer, region, mode }: &Access| Touch {
            buffer: *buffer,
            version: 0,
            region: region.clone(),
            mode: *mode,
        };
        self.accesses.iter().map(touch).collect()
    }
}

impl AsRef<[Access]> for Piece {
    fn as_ref(&self) -> &[Access] {
        &self.accesses
    }
}

impl<'a, const K: usize> Declaration<'a, K> {
    #[inline(always)]
    pub(in crate::submit) fn new(
        core: &'a Arc<Core>,
        group: Option<&'a GroupHandle>,
        task: &'a TaskLabel,
        whole: Chunk<K>,
        chunks: &'a [Chunk<K>],
    ) -> Self {
        // First: fields that are evaluated before a call that may panic are made in another place and copied.
        let record = core.needs_records().then(|| Self::record(core));
        Self {
            core,
            group,
            task,
            whole,
            chunks,
            accesses: SmallVec::new(),
            reductions: SmallVec::new(),
            effects: SmallVec::new(),
            priority: 0,
            communicates: false,
            pieces: Vec::new(),
            has_leaves: false,
            record,
        }
    }

    #[cold]
    fn record(core: &Core) -> Box<TaskRecord> {
        let times_weighted = core.several_nodes().map_or(0, Nodes::times_weighted);
        Box::new(TaskRecord { times_weighted, ..TaskRecord::default() })
    }

    /// Declares an access to a buffer.
    #[inline]
    pub(in crate::submit) fn buffer<T: Element, M: RangeMapper<K, D> + 'static, const D: usize>(
        &mut self,
        buffer: Buffer<T, D>,
        mapper: M,
        mode: Mode,
    ) -> Result<BoundBuffer<T, D>, Error> {
        if self.is_one_chunk() {
            let region = self.region(&buffer.inner, &mapper, mode)?;
            self.note_buffer(&buffer, mapper, mode);
            return Ok(BoundBuffer::new(buffer, Regions::from_buf([region])));
        }
        let regions = self.regions(&buffer.inner, &mapper, Promise::of(&mapper), mode)?;
        self.note_buffer(&buffer, mapper, mode);
        Ok(BoundBuffer::new(buffer, regions))
    }

    /// Notes an access for the command graph, if the task has a record.
    #[inline(always)]
    fn note_buffer<T: Element, const D: usize>(
        &mut self,
        buffer: &Buffer<T, D>,
        mapper: impl RangeMapper<K, D> + 'static,
        mode: Mode,
    ) {
        if let Some(record) = &mut self.record {
            let mapper = erase(mapper, buffer.extent());
            record.accesses.push(BufferAccess { buffer: buffer.inner.id, mode, mapper });
            record.buffers.push(buffer.inner.label().to_string());
            if self.core.several_nodes().is_some() {
                let buffer: Arc<BufferInner<D>> = Arc::clone(&buffer.inner);
                record.shared.buffers.push(buffer);
            }
        }
    }

    /// Whether one chunk is the whole task, on one node. Most small tasks are so.
    #[inline]
    fn is_one_chunk(&self) -> bool {
        matches!(self.chunks, [only] if only.range == self.whole.range)
            && self.pieces.is_empty()
            && self.core.several_nodes().is_none()
    }

    /// Computes and checks the region of the only chunk, and adds the access.
    #[inline]
    fn region<const D: usize>(
        &mut self,
        inner: &BufferInner<D>,
        mapper: &impl RangeMapper<K, D>,
        mode: Mode,
    ) -> Result<Region<D>, Error> {
        self.check_runtime(&inner.owner, &|| inner.label().to_string())?;
        let region = self.mapped(inner, mapper, Promise::of(mapper), &self.whole)?;
        self.accesses.push(Access { buffer: inner.id, region: region.cast(), mode });
        Ok(region)
    }

    /// The region of a chunk, which lies in the buffer.
    #[inline]
    fn mapped<const D: usize>(
        &self,
        inner: &BufferInner<D>,
        mapper: &(impl RangeMapper<K, D> + ?Sized),
        promise: Promise<D>,
        chunk: &Chunk<K>,
    ) -> Result<Region<D>, Error> {
        let region = mapper.map(chunk, inner.extent);
        let all = GridBox::full(inner.extent);
        if !region.boxes().iter().all(|range| all.contains(range)) {
            return Err(self.outside(inner, &mapper.describe(), chunk, &region));
        }
        if !(promise.is_kept)(region.boxes()) {
            return Err(self.misshapen(inner, mapper.describe(), promise.shape, chunk, &region));
        }
        Ok(region)
    }

    /// The error of a region of another shape than its mapper promises.
    #[cold]
    fn misshapen<const D: usize>(
        &self,
        inner: &BufferInner<D>,
        mapper: String,
        promised: &'static str,
        chunk: &Chunk<K>,
        region: &Region<D>,
    ) -> Error {
        let (chunk, region) = (chunk.range.to_string(), region.to_string());
        self.mistake(&inner.label(), Mistake::OtherShape { mapper, promised, chunk, region })
    }

    /// The error of a region that leaves its buffer.
    #[cold]
    fn outside<const D: usize>(
        &self,
        inner: &BufferInner<D>,
        mapper: &str,
        chunk: &Chunk<K>,
        region: &Region<D>,
    ) -> Error {
        self.mistake(
            &inner.label(),
            Mistake::OutsideBuffer {
                extent: inner.extent.to_string(),
                region: region.to_string(),
                mapper: mapper.into(),
                chunk: chunk.range.to_string(),
            },
        )
    }

    /// Computes and checks the regions of all chunks, and adds the access with the region of the whole task.
    #[inline(never)]
    fn regions<const D: usize>(
        &mut self,
        inner: &BufferInner<D>,
        mapper: &dyn RangeMapper<K, D>,
        promise: Promise<D>,
        mode: Mode,
    ) -> Result<Regions<D>, Error> {
        self.check_runtime(&inner.owner, &|| inner.label().to_string())?;
        let map = |chunk: &Chunk<K>| self.mapped(inner, mapper, promise, chunk);
        let whole = map(&self.whole)?;
        let several_nodes = self.core.several_nodes().is_some();
        let (region, regions) = if let [only] = self.chunks
            && only.range == self.whole.range
        {
            (whole.cast(), Regions::from_buf([whole]))
        } else {
            // Not `collect`, which does not know how many there are if one may be an error.
            let mut regions = Regions::with_capacity(self.chunks.len());
            for chunk in self.chunks {
                regions.push(map(chunk)?);
            }
            self.check_monotonic(inner, mapper, &regions, &whole)?;
            let region = match mode.writes() {
                // The chunks of this node write a part. The command graph checks that all nodes together
                // write the whole.
                true if several_nodes => {
                    if !are_ascending(&regions) {
                        self.written(inner, mapper, &regions, whole.clone())?;
                    }
                    whole
                }
                true => self.written(inner, mapper, &regions, whole)?,
                false => whole,
            };
            (region.cast(), regions)
        };
        let of_part = match regions.as_slice() {
            _ if !several_nodes || !self.pieces.is_empty() => None,
            [] => None,
            [only] => Some(only.clone()),
            // A mapper that leaves the buffer here has broken its promise to be monotonic.
            several => map(&self.part()).ok().or_else(|| several.iter().cloned().reduce(|a, b| a.union(&b))),
        };
        self.pieces.iter_mut().for_each(|piece| piece.access(inner.id, &regions, mode));
        of_part.into_iter().for_each(|region| self.touch(inner.id, region.cast(), mode));
        self.accesses.push(Access { buffer: inner.id, region, mode });
        Ok(regions)
    }

    /// With several nodes: the chunk of this one, which was split further.
    fn part(&self) -> Chunk<K> {
        let range = self.chunks.iter().fold(GridBox::EMPTY, |all, chunk| all.bounding(&chunk.range));
        Chunk { range, global: self.whole.global }
    }

    /// With several nodes: notes what this node's part of the task accesses.
    pub(in crate::submit) fn touch(&mut self, buffer: BufferId, region: Region<3>, mode: Mode) {
        if let Some(record) = &mut self.record {
            let touch = Touch { buffer, version: 0, region, mode };
            match record.shared.touches.first_mut() {
                Some(touches) => touches.push(touch),
                None => record.shared.touches.push(smallvec![touch]),
            }
        }
    }

    /// Declares a reduction to a whole buffer. With several nodes, returns which node has which partial
    /// results, and whether the kernel and the combination flush denormal numbers.
    pub(in crate::submit) fn reduction<T: Element, const D: usize>(
        &mut self,
        buffer: &Buffer<T, D>,
        mode: Mode,
    ) -> Result<Option<(Shares, bool)>, Error> {
        let inner = &*buffer.inner;
        self.check_runtime(&inner.owner, &|| inner.label().to_string())?;
        let region = Region::from(GridBox::full(inner.extent)).cast();
        self.reductions.push(self.accesses.len());
        self.accesses.push(Access { buffer: inner.id, region, mode });
        let Some(record) = &mut self.record else { return Ok(None) };
        record.reductions.push(Reduction { buffer: inner.id, include_current: mode.reads() });
        record.buffers.push(inner.label().to_string());
        let Some(nodes) = self.core.several_nodes() else { return Ok(None) };
        let buffer: Arc<BufferInner<D>> = Arc::clone(&buffer.inner);
        record.shared.buffers.push(buffer);
        let each = if self.has_leaves { leaves(&self.whole.range).per_band() } else { 1 };
        let shares = nodes.shares(&record.work, &record.hints, each as u32);
        Ok(Some((shares, record.flush_denormals)))
    }

    /// With several nodes: adds the partial results of a reduction.
    pub(in crate::submit) fn partials(&mut self, buffer: BufferId, partials: Arc<dyn Partials>) {
        if let Some(record) = &mut self.record {
            record.shared.partials.push((buffer, partials));
        }
    }

    /// Checks that the region of the whole index space contains the regions of all chunks.
    fn check_monotonic<const D: usize>(
        &self,
        buffer: &BufferInner<D>,
        mapper: &dyn RangeMapper<K, D>,
        regions: &[Region<D>],
        whole: &Region<D>,
    ) -> Result<(), Error> {
        let Some(i) = regions.iter().position(|region| !whole.contains(region)) else { return Ok(()) };
        Err(self.mistake(
            &buffer.label(),
            Mistake::NotMonotonic {
                mapper: mapper.describe(),
                chunk: self.chunks[i].range.to_string(),
                region: regions[i].to_string(),
                whole: whole.to_string(),
            },
        ))
    }

    /// The region that all chunks together write. Checks that no element is written twice.
    fn written<const D: usize>(
        &self,
        buffer: &BufferInner<D>,
        mapper: &dyn RangeMapper<K, D>,
        regions: &[Region<D>],
        whole: Region<D>,
    ) -> Result<Region<D>, Error> {
        if let [only] = regions {
            return Ok(only.clone());
        }
        let points: u128 = regions.iter().map(|region| region.len() as u128).sum();
        if are_ascending(regions) && points == whole.len() as u128 {
            return Ok(whole);
        }
        let union = regions.iter().fold(Region::empty(), |all, region| all.union(region));
        if union.len() as u128 == points {
            return Ok(if union.len() == whole.len() { whole } else { union });
        }
        // Some point is common, or there are more points than a number can count.
        for (i, first) in regions.iter().enumerate() {
            for (j, second) in regions[..i].iter().enumerate() {
                if first.intersects(second) {
                    return Err(self.mistake(
                        &buffer.label(),
                        Mistake::OverlappingWrites {
                            mapper: mapper.describe(),
                            chunks: [j, i].map(|c| self.chunks[c].range.to_string()),
                            common: first.intersection(second).to_string(),
                        },
                    ));
                }
            }
        }
        Ok(union)
    }

    /// Declares an effect on a host object.
    pub(in crate::submit) fn object<T: Send + 'static>(
        &mut self,
        object: &Arc<ObjectInner<T>>,
        order: Order,
    ) -> Result<(), Error> {
        self.check_runtime(&object.owner, &|| object.label())?;
        if self.effects.iter().any(|effect| effect.object == object.id) {
            return Err(Error::TwoEffects { task: self.task.clone(), object: object.label() });
        }
        self.effects.push(Effect { object: object.id, order });
        if let Some(record) = &mut self.record {
            record.objects.push(object.label());
            if object.home.is_some() {
                record.shared.objects.push(Kept::new(object));
            }
        }
        Ok(())
    }

    /// The task has a communicator: with several nodes, it begins on all of them or on none.
    pub(in crate::submit) fn communicates(&mut self) {
        self.communicates = true;
        self.record.iter_mut().for_each(|record| record.shared.has_gate = true);
    }

    /// Checks that no other object decides when a task with a communicator runs. Each node would decide for
    /// itself, and two nodes could wait for each other in the calls of two tasks.
    pub(in crate::submit) fn check_order(&self) -> Result<(), Error> {
        if !self.communicates || self.effects.iter().all(|effect| effect.order.is_in_order()) {
            return Ok(());
        }
        let range = "`sequential()`, because all nodes must run tasks with a communicator in one order";
        Err(Error::of_setting(
            self.task,
            "the order of an effect",
            "`exclusive()` or `relaxed()`".into(),
            range,
        ))
    }

    /// Checks that a buffer or object belongs to the runtime of this task.
    pub(in crate::submit) fn check_runtime(
        &self,
        owner: &Weak<dyn Owner>,
        label: &dyn Fn() -> String,
    ) -> Result<(), Error> {
        if owner::is_owned_by(owner, self.core) {
            return Ok(());
        }
        Err(Error::OtherRuntime { what: label() })
    }

    /// Translates an error of the graph into the terms of the program. `buffers` are the label and the rank
    /// of the buffer of each access.
    pub(in crate::submit) fn explain(&self, error: GraphError, buffers: &[(Label, usize)]) -> Error {
        explain(self.task, error, buffers)
    }

    /// Translates an error of the command graph.
    pub(in crate::submit) fn explain_command(
        &self,
        error: &CommandError,
        buffers: &[(Label, usize)],
    ) -> Error {
        let access = match error {
            CommandError::OverlappingWrites { access, .. }
            | CommandError::InexactWrite { access, .. }
            | CommandError::NotMonotonic { access, .. } => *access,
            _ => 0,
        };
        match buffers.get(access) {
            Some((label, _)) => self.mistake(label, Mistake::BetweenNodes { why: error.to_string() }),
            None => Error::OneNodeOnly { what: error.to_string() },
        }
    }

    fn mistake(&self, buffer: &Label, mistake: Mistake) -> Error {
        refused(self.task, buffer, mistake)
    }
}

fn refused(task: &TaskLabel, buffer: &Label, mistake: Mistake) -> Error {
    Box::new(DeclarationError { task: task.clone(), buffer: buffer.clone(), mistake }).into()
}

/// Translates an error of the graph into the terms of the program: see [`Declaration::explain`].
pub(in crate::submit) fn explain(task: &TaskLabel, error: GraphError, buffers: &[(Label, usize)]) -> Error {
    let at = |access: usize, region: &Region<3>, mistake: fn(String) -> Mistake| {
        let (label, rank) = &buffers[access];
        refused(task, label, mistake(in_rank(region, *rank)))
    };
    match error {
        GraphError::NeverWritten { access, missing } => {
            at(access, &missing, |missing| Mistake::NeverWritten { missing })
        }
        GraphError::Overlap { accesses: [access, _], common } => {
            at(access, &common, |common| Mistake::OverlappingAccesses { common })
        }
        // Regions were checked against the buffer when they were mapped.
        other => unreachable!("{other}"),
    }
}

/// Whether each region is one box behind the previous one along the first dimension. Then no two regions have
/// a point in common. This recognises the results of the usual splits and mappers without a union.
fn are_ascending<const D: usize>(regions: &[Region<D>]) -> bool {
    D > 0
        && regions.windows(2).all(|pair| match (pair[0].boxes(), pair[1].boxes()) {
            ([before], [after]) => before.max()[0] <= after.min()[0],
            _ => false,
        })
}

/// Prints a region of a buffer with as many dimensions as the buffer has.
fn in_rank(region: &Region<3>, rank: usize) -> String {
    match rank {
        0 => region.cast::<0>().to_string(),
        1 => region.cast::<1>().to_string(),
        2 => region.cast::<2>().to_string(),
        _ => region.to_string(),
    }
}
