//! A declared access to a buffer, bound: with the regions of all chunks and, once attached, with memory.

use super::{
    allocation::Start,
    buffer::{Buffer, BufferInner},
    element::Element,
    stored::Stored,
};
use crate::{error::Error, label::Label};
use anabranch_grid::{Extent, Region};
use smallvec::SmallVec;
use std::sync::Arc;

/// The regions of all chunks.
pub(crate) type Regions<const D: usize> = SmallVec<[Region<D>; 1]>;

/// An access to a buffer, with its regions and its memory.
#[derive(Debug)]
pub struct BoundBuffer<T, const D: usize> {
    buffer: Buffer<T, D>,
    pub(crate) regions: Regions<D>,
    start: Start<T>,
}

impl<T: Element, const D: usize> BoundBuffer<T, D> {
    pub(crate) fn new(buffer: Buffer<T, D>, regions: Regions<D>) -> Self {
        Self { buffer, regions, start: Start::NONE }
    }

    /// The address of the first element of the whole buffer.
    #[inline]
    pub(crate) fn start(&self) -> *mut T {
        self.start.get()
    }

    #[inline]
    pub(crate) fn extent(&self) -> Extent<D> {
        self.buffer.inner.extent
    }

    /// The buffer, without its type.
    pub(crate) fn stored(&self) -> Arc<dyn Stored> {
        let buffer: Arc<BufferInner<D>> = Arc::clone(&self.buffer.inner);
        buffer
    }

    pub(crate) fn label(&self) -> Label {
        self.buffer.inner.label()
    }

    /// Attaches the memory of the next version.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(crate) fn attach(&mut self, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
        let version = versions.next().expect("the graph gives a version for every access");
        // The memory stays at this address as long as `buffer` lives.
        self.start = self.buffer.memory(version)?;
        Ok(())
    }
}
