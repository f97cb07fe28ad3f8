//! Buffers without their types, as transfers between nodes see them.

use super::{buffer::BufferInner, cluster_object::Kept, partials::Partials};
use crate::{error::Error, label::Label};
use anabranch_graph::{BufferId, Mode};
use anabranch_grid::{Extent, GridBox, Region};
use anabranch_wire::Layout;
use smallvec::SmallVec;
use std::{fmt, ops::Deref, sync::Arc};

/// With several nodes: what a task accesses, of which parts are sent and received.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) buffers: Vec<Arc<dyn Stored>>,
    /// The host objects of the whole cluster.
    pub(crate) objects: Vec<Kept>,
    /// The partial results of the reductions of the task.
    pub(crate) partials: Vec<(BufferId, Arc<dyn Partials>)>,
    /// What this node's part of the task accesses, or what each piece of that part does.
    pub(crate) touches: SmallVec<[Touches; 1]>,
    /// Whether the task begins on all nodes or on none.
    pub(crate) has_gate: bool,
}

/// What a part of a task accesses, or a piece of it.
pub(crate) type Touches = SmallVec<[Touch; 2]>;

/// A region of a buffer that a part of a task accesses.
#[derive(Clone, Debug)]
pub(crate) struct Touch {
    pub(crate) buffer: BufferId,
    /// The version, which is known when the graph has the task.
    pub(crate) version: u32,
    pub(crate) region: Region<3>,
    pub(crate) mode: Mode,
}

/// A buffer, whatever its elements and its rank are.
pub trait Stored: Send + Sync {
    fn id(&self) -> BufferId;

    /// The number of bytes of an element.
    fn element(&self) -> usize;

    /// The extent, padded to three dimensions.
    fn extent(&self) -> Extent<3>;

    /// The address of the first element of a version, or null if no task has attached the memory yet. It
    /// stays there as long as the buffer.
    fn start(&self, version: u32) -> *mut u8;

    /// The address of the first element of a version, whose memory is allocated if it is not yet.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn memory(&self, version: u32) -> Result<*mut u8, Error>;

    /// The name of the buffer in messages.
    fn label(&self) -> Label;

    /// The number of bytes of the whole buffer, whose memory exists.
    fn bytes(&self) -> usize {
        self.extent().0.into_iter().product::<usize>() * self.element()
    }
}

impl dyn Stored {
    /// Where the boxes of a region lie in the memory of a version.
    pub(crate) fn layouts(&self, region: &Region<3>) -> Vec<Layout> {
        let (extent, element) = (self.extent().0, self.element());
        let of_box = |range: &GridBox<3>| Layout::of_box(extent, element, range.min().0, range.max().0);
        region.boxes().iter().map(of_box).collect()
    }
}

/// One version of a buffer.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) buffer: Arc<dyn Stored>,
    pub(crate) number: u32,
}

impl Version {
    /// The buffer and the number.
    pub(crate) fn key(&self) -> (BufferId, u32) {
        (self.buffer.id(), self.number)
    }

    /// The address of the first element: see [`Stored::start`].
    pub(crate) fn start(&self) -> *mut u8 {
        self.buffer.start(self.number)
    }
}

impl Deref for Version {
    type Target = dyn Stored;

    fn deref(&self) -> &Self::Target {
        &*self.buffer
    }
}

impl fmt::Debug for dyn Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.id(), self.extent())
    }
}

impl<const D: usize> Stored for BufferInner<D> {
    fn id(&self) -> BufferId {
        self.id
    }

    fn element(&self) -> usize {
        self.element
    }

    fn extent(&self) -> Extent<3> {
        self.extent.cast()
    }

    fn start(&self, version: u32) -> *mut u8 {
        self.start_of(version)
    }

    fn memory(&self, version: u32) -> Result<*mut u8, Error> {
        BufferInner::memory(self, version)
    }

    fn label(&self) -> Label {
        BufferInner::label(self)
    }
}
