//! Declared accesses: what a task may do with a buffer or host object, and the view through which it does it.
//!
//! An access goes through three states: *declared* (a structure of this folder, with the range mapper), *bound* (the regions
//! of all chunks are computed and checked, and memory is attached) and, for one call of the kernel, *viewed*.

use super::{declaration::Declaration, sealed::Sealed};
use crate::{
    data::{
        bound::BoundBuffer,
        buffer::Buffer,
        element::Element,
        view::{ReadView, WriteView},
    },
    error::Error,
    label::Label,
};
use anabranch_graph::Mode;
use anabranch_grid::RangeMapper;

/// A declared access of a task over a `K`-dimensional index space.
pub trait Access<const K: usize>: Sealed + 'static {
    /// The access with its regions and its memory.
    type Bound: Send + Sync + 'static;
    /// The owner of the view during one call: a lock, for example.
    type Guard<'b>;
    /// The view that the kernel or host function gets.
    type View<'v>;

    /// Whether the access is a reduction, whose tree has the chunks as its leaves.
    #[doc(hidden)]
    const REDUCES: bool = false;

    /// Computes and checks the regions of all chunks and adds them to the declaration.
    #[doc(hidden)]
    fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error>;

    /// Attaches the memory of the version that the graph has chosen, which is the next one of the iterator.
    #[doc(hidden)]
    fn attach(bound: &mut Self::Bound, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error>;

    /// The buffer and its rank, for error messages.
    #[doc(hidden)]
    fn label(bound: &Self::Bound) -> Option<(Label, usize)>;

    /// Opens the access for chunk `chunk`.
    ///
    /// # Safety
    /// Memory is attached. The task runs now, as the graph allows it. No other guard for this chunk exists.
    #[doc(hidden)]
    unsafe fn guard(bound: &Self::Bound, chunk: usize) -> Self::Guard<'_>;

    /// The view, as long as the guard is borrowed.
    #[doc(hidden)]
    fn view<'v>(guard: &'v mut Self::Guard<'_>) -> Self::View<'v>;

    /// Is called once, when all chunks are done.
    ///
    /// # Safety
    /// Memory is attached. The task runs now, as the graph allows it. There is no guard.
    #[doc(hidden)]
    unsafe fn finish(_: &Self::Bound) {}
}

/// An access that a kernel may have: to a buffer. A kernel runs on several threads at once, so effects on host objects are for
/// host tasks.
pub trait KernelAccess: Sealed {}

/// A declared [read](super::task::TaskBuilder::read).
#[derive(Debug)]
pub struct Read<T, const D: usize, M> {
    pub(crate) buffer: Buffer<T, D>,
    pub(crate) mapper: M,
}

/// A declared [write](super::task::TaskBuilder::write) or [update](super::task::TaskBuilder::update).
#[derive(Debug)]
pub struct Write<T, const D: usize, M> {
    pub(crate) buffer: Buffer<T, D>,
    pub(crate) mapper: M,
    pub(crate) mode: Mode,
}

impl<T, const D: usize, M> Sealed for Read<T, D, M> {}
impl<T, const D: usize, M> Sealed for Write<T, D, M> {}
impl<T, const D: usize, M> KernelAccess for Read<T, D, M> {}
impl<T, const D: usize, M> KernelAccess for Write<T, D, M> {}

impl<T, const D: usize, M, const K: usize> Access<K> for Read<T, D, M>
where
    T: Element,
    M: RangeMapper<K, D> + 'static,
{
    type Bound = BoundBuffer<T, D>;
    type Guard<'b> = ReadView<T, D>;
    type View<'v> = &'v ReadView<T, D>;

    fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error> {
        declaration.buffer(self.buffer, self.mapper, Mode::Read)
    }

    fn attach(bound: &mut Self::Bound, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
        bound.attach(versions)
    }

    fn label(bound: &Self::Bound) -> Option<(Label, usize)> {
        Some((bound.label(), D))
    }

    unsafe fn guard(bound: &Self::Bound, chunk: usize) -> Self::Guard<'_> {
        // SAFETY: while the task runs, the graph lets no task write the region; the caller drops the guard before `bound`.
        unsafe { ReadView::new(bound, chunk) }
    }

    fn view<'v>(guard: &'v mut Self::Guard<'_>) -> Self::View<'v> {
        guard
    }
}

impl<T, const D: usize, M, const K: usize> Access<K> for Write<T, D, M>
where
    T: Element,
    M: RangeMapper<K, D> + 'static,
{
    type Bound = BoundBuffer<T, D>;
    type Guard<'b> = WriteView<'b, T, D>;
    type View<'v> = &'v mut WriteView<'v, T, D>;

    fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error> {
        declaration.buffer(self.buffer, self.mapper, self.mode)
    }

    fn attach(bound: &mut Self::Bound, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
        bound.attach(versions)
    }

    fn label(bound: &Self::Bound) -> Option<(Label, usize)> {
        Some((bound.label(), D))
    }

    unsafe fn guard(bound: &Self::Bound, chunk: usize) -> Self::Guard<'_> {
        // SAFETY: while the task runs, the graph lets no other task use the region, and no other chunk or access of this task
        // overlaps it; the caller drops the guard before `bound`.
        unsafe { WriteView::new(bound, chunk) }
    }

    fn view<'v>(guard: &'v mut Self::Guard<'_>) -> Self::View<'v> {
        guard.for_call()
    }
}
