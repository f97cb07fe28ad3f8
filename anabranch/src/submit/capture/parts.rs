//! Captures of other parts of a buffer on each node.
//!
//! Every node computes the parts of all nodes. So all of them derive the same transfers, and a part that was
//! never written is the same error everywhere. The hash of the parts is part of the hash of the program.

use super::{Capture, CaptureMode, Fenceable, Weight};
use crate::{
    data::{
        bound::{BoundBuffer, Regions},
        buffer::{BufferInner, Parts},
        element::Element,
        snapshot::Snapshot,
        view::ReadView,
    },
    error::Error,
    label::Label,
    submit::{
        access::{Access, Read, sealed::Sealed},
        launch::declaration::Declaration,
    },
};
use anabranch_graph::{
    Access as GraphAccess, Mode, RollingHash,
    command::{BufferAccess, erase},
};
use anabranch_grid::{AnyBoxes, Chunk, Extent, Fixed, GridBox, MapperValue, RangeMapper, Region};
use std::{fmt, iter, sync::Arc};

/// The parts of all nodes. Node `n` is point `n` of the index space.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::submit) struct OfNodes<const D: usize>(Vec<Region<D>>);

impl<const D: usize> OfNodes<D> {
    pub(in crate::submit) fn new(parts: Vec<Region<D>>) -> Self {
        Self(parts)
    }

    /// The part of a node.
    pub(in crate::submit) fn of(&self, node: u16) -> Region<D> {
        self.0[usize::from(node)].clone()
    }

    /// The parts of all nodes together.
    pub(in crate::submit) fn all(&self) -> Region<D> {
        Self::union(&self.0)
    }

    /// A hash that is the same on every node, on whatever machine.
    pub(in crate::submit) fn hash(&self) -> u64 {
        let mut hash = RollingHash::default();
        hash.add(D as u64);
        for part in &self.0 {
            let points = part.boxes().iter().flat_map(|range| [range.min().0, range.max().0]).flatten();
            iter::once(part.boxes().len()).chain(points).for_each(|word| hash.add(word as u64));
        }
        hash.value()
    }

    fn union(parts: &[Region<D>]) -> Region<D> {
        Region::from_boxes(parts.iter().flat_map(|part| part.boxes()).copied())
    }
}

impl<const D: usize> RangeMapper<1, D> for OfNodes<D> {
    type Shape = AnyBoxes<D>;

    fn map(&self, chunk: &Chunk<1>, _: Extent<D>) -> Region<D> {
        // A dry run may be for more nodes than there are. These capture nothing.
        let [first, end] = [chunk.range.min(), chunk.range.max()].map(|at| at[0].min(self.0.len()));
        Self::union(&self.0[first..end])
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn as_value(&self) -> Option<&dyn MapperValue> {
        Some(self)
    }
}

impl<const D: usize> fmt::Debug for OfNodes<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part for each node")
    }
}

impl Declaration<'_, 0> {
    /// Declares a read of a part for each node, by a fence or an epoch. All nodes declare the parts of all.
    fn parts<T: Element, const D: usize>(
        &mut self,
        Parts { buffer, part, home }: Parts<T, D>,
    ) -> Result<BoundBuffer<T, D>, Error> {
        let (inner, nodes) = (&*buffer.inner, self.core.nodes());
        self.check_runtime(&inner.owner, &|| inner.label().to_string())?;
        if let Some(node) = home.filter(|&node| node >= nodes) {
            let range = "an existing node: the first is 0";
            return Err(Error::Setting { setting: "the node of a capture", value: node.to_string(), range });
        }
        let parts = (0..nodes).map(|node| part(node).map_or(Ok(Region::empty()), |range| inner.part(range)));
        let parts = OfNodes::new(parts.collect::<Result<_, _>>()?);
        let own = parts.of(self.core.cluster().map_or(0, |cluster| cluster.node()));
        if self.core.several_nodes().is_some() {
            self.touch(inner.id, own.cast(), Mode::Read);
        }
        self.accesses.push(GraphAccess { buffer: inner.id, region: parts.all().cast(), mode: Mode::Read });
        if let Some(record) = &mut self.record {
            let before = record.hints.own_regions.unwrap_or(0).rotate_left(17);
            record.hints.own_regions = Some(before ^ parts.hash());
            let mapper = erase::<1, D>(parts, inner.extent);
            record.accesses.push(BufferAccess { buffer: inner.id, mode: Mode::Read, mapper });
            record.buffers.push(inner.label().to_string());
            if self.core.several_nodes().is_some() {
                let buffer: Arc<BufferInner<D>> = Arc::clone(&buffer.inner);
                record.shared.buffers.push(buffer);
            }
        }
        Ok(BoundBuffer::new(buffer, Regions::from_buf([own])))
    }
}

impl<T, const D: usize> Sealed for Parts<T, D> {}

/// The access behind a capture of parts. Its view is that of a read.
impl<T: Element, const D: usize> Access<0> for Parts<T, D> {
    type Bound = BoundBuffer<T, D>;
    type Guard<'b> = ReadView<T, D, AnyBoxes<D>>;
    type View<'v> = &'v ReadView<T, D, AnyBoxes<D>>;

    fn declare(self, declaration: &mut Declaration<'_, 0>) -> Result<Self::Bound, Error> {
        declaration.parts(self)
    }

    fn attach(bound: &mut Self::Bound, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
        bound.attach(versions)
    }

    fn label(bound: &Self::Bound) -> Option<(Label, usize)> {
        Some((bound.label(), D))
    }

    unsafe fn guard(bound: &Self::Bound, chunk: usize) -> Self::Guard<'_> {
        // SAFETY: the same promise.
        unsafe { <Read<T, D, Fixed<Region<D>>> as Access<0>>::guard(bound, chunk) }
    }

    fn view<'v>(guard: &'v mut Self::Guard<'_>) -> Self::View<'v> {
        guard
    }
}

impl<M: CaptureMode, T: Element, const D: usize> Capture<M> for Parts<T, D> {
    type Output = Option<Snapshot<T, D>>;
    type Access = Self;

    fn access(self) -> Result<Self, Error> {
        Ok(self)
    }

    /// Of the largest part that there may be. The number of nodes is not known yet.
    fn weight(&self) -> Weight {
        Weight::Bytes(GridBox::full(self.buffer.extent()).len().saturating_mul(size_of::<T>()))
    }

    fn take(view: ReadView<T, D, AnyBoxes<D>>) -> Result<Self::Output, Error> {
        Ok((!view.region().is_empty()).then(|| Snapshot::of(&view)))
    }
}

impl<T: Element, const D: usize> Fenceable for &Parts<T, D> {
    type Captures = Parts<T, D>;

    fn captures(self) -> Parts<T, D> {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn small_parts_have_different_hashes() {
        let _deadline = testing::deadline();
        let boxes = (0..5).flat_map(|begin| (begin..5).map(move |end| GridBox::new(begin, end).into()));
        let parts: Vec<Region<1>> = boxes.filter(|part: &Region<1>| !part.is_empty()).collect();
        let parts: Vec<_> = parts.into_iter().chain([Region::empty()]).collect();
        let mut seen = HashMap::new();
        for (a, b, c) in parts.iter().flat_map(|a| {
            parts.iter().flat_map(move |b| [None, Some(a)].map(move |c| (a.clone(), b.clone(), c.cloned())))
        }) {
            let all = OfNodes::new([Some(a), Some(b), c].into_iter().flatten().collect());
            let hash = all.hash();
            let other = seen.insert(hash, all.clone());
            assert!(other.is_none_or(|other| other == all), "{:?}", all.0);
        }
    }
}
