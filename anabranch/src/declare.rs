//! What a task declares: its regions, computed by the range mappers for every chunk, and checked.

use crate::{
    access::BoundBuffer,
    buffer::{Buffer, Label},
    core::Core,
    element::Element,
    error::{DeclarationError, Error, Mistake, TaskLabel},
};
use anabranch_graph::{Access, BufferId, Effect, GraphError, Mode, ObjectId, Order};
use anabranch_grid::{Chunk, RangeMapper, Region};
use std::sync::{Arc, Weak};

/// The declaration of one task, while its accesses are gathered.
#[derive(Debug)]
pub struct Declaration<'a, const K: usize> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) task: &'a TaskLabel,
    pub(crate) whole: Chunk<K>,
    pub(crate) chunks: &'a [Chunk<K>],
    pub(crate) accesses: Vec<Access>,
    pub(crate) effects: Vec<Effect>,
    /// For messages: the buffer of each access, and its rank.
    buffers: Vec<(Label, usize)>,
}

impl<'a, const K: usize> Declaration<'a, K> {
    pub(crate) fn new(
        core: &'a Arc<Core>,
        task: &'a TaskLabel,
        whole: Chunk<K>,
        chunks: &'a [Chunk<K>],
    ) -> Self {
        Self { core, task, whole, chunks, accesses: Vec::new(), effects: Vec::new(), buffers: Vec::new() }
    }

    /// Declares an access to a buffer.
    pub(crate) fn buffer<T: Element, const D: usize>(
        &mut self,
        buffer: Buffer<T, D>,
        mapper: &dyn RangeMapper<K, D>,
        mode: Mode,
    ) -> Result<BoundBuffer<T, D>, Error> {
        let label = buffer.inner.label();
        self.same_runtime(&buffer.inner.core, &|| label.to_string())?;
        let extent = buffer.extent();
        let all = anabranch_grid::GridBox::full(extent);
        let map = |chunk: &Chunk<K>| {
            let region = mapper.map(chunk, extent);
            if region.boxes().iter().all(|range| all.contains(range)) {
                return Ok(region);
            }
            Err(self.refuse(
                &label,
                Mistake::OutsideBuffer {
                    extent: extent.to_string(),
                    region: region.to_string(),
                    mapper: mapper.describe(),
                    chunk: chunk.range.to_string(),
                },
            ))
        };
        let whole = map(&self.whole)?;
        let regions = self.chunks.iter().map(map).collect::<Result<Vec<_>, _>>()?;
        self.check_monotonic(&label, mapper, &regions, &whole)?;
        let region = if mode.writes() { self.written(&label, mapper, &regions, whole)? } else { whole };
        self.accesses.push(Access { buffer: buffer.inner.id, region: region.cast(), mode });
        self.buffers.push((label, D));
        Ok(BoundBuffer::new(buffer, regions))
    }

    fn check_monotonic<const D: usize>(
        &self,
        label: &Label,
        mapper: &dyn RangeMapper<K, D>,
        regions: &[Region<D>],
        whole: &Region<D>,
    ) -> Result<(), Error> {
        let Some(i) = regions.iter().position(|region| !whole.contains(region)) else { return Ok(()) };
        Err(self.refuse(
            label,
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
        label: &Label,
        mapper: &dyn RangeMapper<K, D>,
        regions: &[Region<D>],
        whole: Region<D>,
    ) -> Result<Region<D>, Error> {
        let points: u128 = regions.iter().map(|region| region.len() as u128).sum();
        if let [only] = regions {
            return Ok(only.clone());
        }
        let union = regions.iter().fold(Region::empty(), |all, region| all.union(region));
        if union.len() as u128 == points {
            return Ok(if union.len() == whole.len() { whole } else { union });
        }
        for (i, first) in regions.iter().enumerate() {
            for (j, second) in regions[..i].iter().enumerate() {
                if first.intersects(second) {
                    return Err(self.refuse(
                        label,
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
    pub(crate) fn object(
        &mut self,
        object: ObjectId,
        core: &Weak<Core>,
        order: Order,
        label: impl Fn() -> String,
    ) -> Result<(), Error> {
        self.same_runtime(core, &label)?;
        if self.effects.iter().any(|effect| effect.object == object) {
            return Err(Error::TwoEffects { task: self.task.clone(), object: label() });
        }
        self.effects.push(Effect { object, order });
        Ok(())
    }

    fn same_runtime(&self, core: &Weak<Core>, label: &dyn Fn() -> String) -> Result<(), Error> {
        if std::ptr::eq(core.as_ptr(), Arc::as_ptr(self.core)) {
            return Ok(());
        }
        Err(Error::OtherRuntime { what: label() })
    }

    /// The name of a buffer that this task accesses.
    pub(crate) fn label_of(&self, buffer: BufferId) -> Label {
        let access = self.accesses.iter().position(|a| a.buffer == buffer);
        self.buffers[access.expect("a buffer of this task")].0.clone()
    }

    /// The graph's refusal in the program's words.
    pub(crate) fn explain(&self, error: GraphError) -> Error {
        let told = |access: usize, region: &Region<3>, mistake: fn(String) -> Mistake| {
            let (label, rank) = &self.buffers[access];
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

/// A region of a buffer of `rank` dimensions in as many.
fn in_rank(region: &Region<3>, rank: usize) -> String {
    match rank {
        0 => region.cast::<0>().to_string(),
        1 => region.cast::<1>().to_string(),
        2 => region.cast::<2>().to_string(),
        _ => region.to_string(),
    }
}
