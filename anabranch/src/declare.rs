//! What a task declares: its regions, computed by the range mappers for every chunk, and checked.

use crate::{
    access::{BoundBuffer, Regions},
    buffer::{Buffer, Inner, Label},
    core::Core,
    element::Element,
    error::{DeclarationError, Error, Mistake, TaskLabel},
    host_object,
};
use anabranch_graph::{
    Access, Effect, GraphError, Mode, Order,
    command::{BufferAccess, Hints, Reduction, Work, erase},
};
use anabranch_grid::{Chunk, GridBox, RangeMapper, Region};
use smallvec::SmallVec;
use std::sync::{Arc, Weak};

/// The declaration of one task, while its accesses are gathered.
#[derive(Debug)]
pub struct Declaration<'a, const K: usize> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) task: &'a TaskLabel,
    pub(crate) whole: Chunk<K>,
    pub(crate) chunks: &'a [Chunk<K>],
    pub(crate) accesses: SmallVec<[Access; 2]>,
    pub(crate) effects: SmallVec<[Effect; 2]>,
    pub(crate) priority: i32,
    /// For a recorded runtime: what is told about the task beyond that.
    pub(crate) told: Option<Box<Told>>,
}

/// What the recorder is told about a task, beyond its regions.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) work: Work,
    pub(crate) hints: Hints,
    pub(crate) accesses: Vec<BufferAccess>,
    pub(crate) reductions: Vec<Reduction>,
    /// The labels of the buffers, as many as there are regions.
    pub(crate) buffers: Vec<String>,
    /// The labels of the host objects, as many as there are effects.
    pub(crate) objects: Vec<String>,
}

impl Default for Told {
    fn default() -> Self {
        Self {
            work: Work::HostOnce,
            hints: Hints::default(),
            accesses: Vec::new(),
            reductions: Vec::new(),
            buffers: Vec::new(),
            objects: Vec::new(),
        }
    }
}

impl<'a, const K: usize> Declaration<'a, K> {
    pub(crate) fn new(
        core: &'a Arc<Core>,
        task: &'a TaskLabel,
        whole: Chunk<K>,
        chunks: &'a [Chunk<K>],
    ) -> Self {
        Self {
            core,
            task,
            whole,
            chunks,
            accesses: SmallVec::new(),
            effects: SmallVec::new(),
            priority: 0,
            told: core.is_recorded().then(Box::default),
        }
    }

    /// Declares an access to a buffer.
    pub(crate) fn buffer<T: Element, const D: usize>(
        &mut self,
        buffer: Buffer<T, D>,
        mapper: impl RangeMapper<K, D> + 'static,
        mode: Mode,
    ) -> Result<BoundBuffer<T, D>, Error> {
        let regions = self.regions(&buffer.inner, &mapper, mode)?;
        if let Some(told) = &mut self.told {
            let mapper = erase(mapper, buffer.extent());
            told.accesses.push(BufferAccess { buffer: buffer.inner.id, mode, mapper });
            told.buffers.push(buffer.inner.label().to_string());
        }
        Ok(BoundBuffer::new(buffer, regions))
    }

    /// The regions of all chunks, checked; the task's whole region is noted.
    fn regions<const D: usize>(
        &mut self,
        inner: &Inner<D>,
        mapper: &dyn RangeMapper<K, D>,
        mode: Mode,
    ) -> Result<Regions<D>, Error> {
        self.same_runtime(&inner.core, &|| inner.label().to_string())?;
        let extent = inner.extent;
        let all = GridBox::full(extent);
        let map = |chunk: &Chunk<K>| {
            let region = mapper.map(chunk, extent);
            if region.boxes().iter().all(|range| all.contains(range)) {
                return Ok(region);
            }
            Err(self.refuse(
                &inner.label(),
                Mistake::OutsideBuffer {
                    extent: extent.to_string(),
                    region: region.to_string(),
                    mapper: mapper.describe(),
                    chunk: chunk.range.to_string(),
                },
            ))
        };
        let whole = map(&self.whole)?;
        let (region, regions) = if let [only] = self.chunks
            && only.range == self.whole.range
        {
            (whole.cast(), Regions::from_buf([whole]))
        } else {
            let regions = self.chunks.iter().map(map).collect::<Result<Regions<D>, _>>()?;
            self.check_monotonic(inner, mapper, &regions, &whole)?;
            let region = if mode.writes() { self.written(inner, mapper, &regions, whole)? } else { whole };
            (region.cast(), regions)
        };
        self.accesses.push(Access { buffer: inner.id, region, mode });
        Ok(regions)
    }

    /// Declares a reduction to a whole buffer.
    pub(crate) fn reduction<T: Element, const D: usize>(
        &mut self,
        buffer: &Buffer<T, D>,
        mode: Mode,
    ) -> Result<(), Error> {
        let inner = &*buffer.inner;
        self.same_runtime(&inner.core, &|| inner.label().to_string())?;
        let region = Region::from(GridBox::full(inner.extent)).cast();
        self.accesses.push(Access { buffer: inner.id, region, mode });
        if let Some(told) = &mut self.told {
            told.reductions.push(Reduction { buffer: inner.id, include_current: mode.reads() });
            told.buffers.push(inner.label().to_string());
        }
        Ok(())
    }

    fn check_monotonic<const D: usize>(
        &self,
        buffer: &Inner<D>,
        mapper: &dyn RangeMapper<K, D>,
        regions: &[Region<D>],
        whole: &Region<D>,
    ) -> Result<(), Error> {
        let Some(i) = regions.iter().position(|region| !whole.contains(region)) else { return Ok(()) };
        Err(self.refuse(
            &buffer.label(),
            Mistake::NotMonotonic {
                mapper: mapper.describe(),
                chunk: self.chunks[i].range.to_string(),
                region: regions[i].to_string(),
                whole: whole.to_string(),
            },
        ))
    }

    /// What all chunks together write, no element twice.
    fn written<const D: usize>(
        &self,
        buffer: &Inner<D>,
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
        for (i, first) in regions.iter().enumerate() {
            for (j, second) in regions[..i].iter().enumerate() {
                if first.intersects(second) {
                    return Err(self.refuse(
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
        unreachable!("regions that share no point have as many points as their union")
    }

    /// Declares an effect on a host object.
    pub(crate) fn object<T>(&mut self, object: &host_object::Inner<T>, order: Order) -> Result<(), Error> {
        self.same_runtime(&object.core, &|| object.label())?;
        if self.effects.iter().any(|effect| effect.object == object.id) {
            return Err(Error::TwoEffects { task: self.task.clone(), object: object.label() });
        }
        self.effects.push(Effect { object: object.id, order });
        if let Some(told) = &mut self.told {
            told.objects.push(object.label());
        }
        Ok(())
    }

    fn same_runtime(&self, core: &Weak<Core>, label: &dyn Fn() -> String) -> Result<(), Error> {
        if std::ptr::eq(core.as_ptr(), Arc::as_ptr(self.core)) {
            return Ok(());
        }
        Err(Error::OtherRuntime { what: label() })
    }

    /// Whether the task may conflict with others: not be ordered against them, and yet not run at the same time.
    pub(crate) fn contends(&self) -> bool {
        self.effects.iter().any(|effect| !effect.order.is_in_order())
    }

    /// The graph's refusal in the program's words. `buffers`: label and rank of the buffer of each access.
    pub(crate) fn explain(&self, error: GraphError, buffers: &[(Label, usize)]) -> Error {
        let told = |access: usize, region: &Region<3>, mistake: fn(String) -> Mistake| {
            let (label, rank) = &buffers[access];
            self.refuse(label, mistake(in_rank(region, *rank)))
        };
        match error {
            GraphError::NeverWritten { access, missing } => {
                told(access, &missing, |missing| Mistake::NeverWritten { missing })
            }
            GraphError::Overlap { accesses: [access, _], common } => {
                told(access, &common, |common| Mistake::OverlappingAccesses { common })
            }
            // Regions were checked against the buffer when they were mapped.
            other => unreachable!("{other}"),
        }
    }

    fn refuse(&self, buffer: &Label, mistake: Mistake) -> Error {
        Box::new(DeclarationError { task: self.task.clone(), buffer: buffer.clone(), mistake }).into()
    }
}

/// Whether each region is one box that lies behind the one before it along the first dimension: then no two have a point
/// in common. What the usual splits and mappers give is found out without a union.
fn are_ascending<const D: usize>(regions: &[Region<D>]) -> bool {
    D > 0
        && regions.windows(2).all(|pair| match (pair[0].boxes(), pair[1].boxes()) {
            ([before], [after]) => before.max()[0] <= after.min()[0],
            _ => false,
        })
}

/// A region of a buffer of `rank` dimensions in as many.
fn in_rank(region: &Region<3>, rank: usize) -> String {
    match rank {
        0 => region.cast::<0>().to_string(),
        1 => region.cast::<1>().to_string(),
        2 => region.cast::<2>().to_string(),
        _ => region.to_string(),
    }
}
