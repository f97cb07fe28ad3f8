//! Declared accesses: what a task may do with a buffer or host object, and the view through which it does it.
//!
//! An access goes through three states: *declared* (a structure of this folder, with the range mapper),
//! *bound* (the regions of all chunks are computed and checked, and memory is attached) and, for one call of
//! the kernel, *viewed*.

pub(crate) mod effect;
pub(crate) mod list;
pub(crate) mod operator;
pub(crate) mod reduce;
pub(crate) mod sealed;

use self::sealed::Sealed;
use super::launch::declaration::Declaration;
use crate::{
    data::{
        bound::BoundBuffer,
        buffer::Buffer,
        element::Element,
        pattern::Pattern,
        view::{ReadView, UpdateView, WriteView},
    },
    error::Error,
    label::Label,
};
use anabranch_graph::Mode;
use anabranch_grid::{AnyBoxes, RangeMapper};

/// A declared access of a task over a `K`-dimensional index space.
#[diagnostic::on_unimplemented(
    message = "a task cannot have the access `{Self}`",
    label = "not an access",
    note = "`effect(&object, order)` takes `sequential()`, `exclusive()` or `relaxed()`",
    note = "`relaxed()` lets several tasks use `&T` at once, so `T` must be `Sync`: declare `exclusive()` or `sequential()`, or put \
            the value into a `Mutex` or an atomic"
)]
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

    /// The number of elements that it reduces to; 0 if it is no reduction.
    #[doc(hidden)]
    fn reduced(&self) -> usize {
        0
    }

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

    /// In a checked runtime: fills the elements that chunk `chunk` must write with a pattern, before it runs.
    ///
    /// # Safety
    /// See [`guard`](Self::guard).
    #[doc(hidden)]
    unsafe fn prepare(_: &Self::Bound, _chunk: usize, _: &Pattern) {}

    /// In a checked runtime: ends the task with an error if elements still have the pattern, after chunk
    /// `chunk`.
    ///
    /// # Safety
    /// See [`guard`](Self::guard).
    #[doc(hidden)]
    unsafe fn check(_: &Self::Bound, _chunk: usize, _: &Pattern) {}

    /// Is called once, when all chunks are done.
    ///
    /// # Safety
    /// Memory is attached. The task runs now, as the graph allows it. There is no guard.
    #[doc(hidden)]
    unsafe fn finish(_: &Self::Bound) {}
}

/// An access that a kernel may have: to a buffer. A kernel runs on several threads at once, so effects on
/// host objects are for host tasks.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot have the access `{Self}`",
    label = "not for kernels",
    note = "a kernel runs on several threads at once, so effects on host objects are for host tasks: call `.host(…)`, or let the \
            kernel write a buffer and a host task put its contents into the object"
)]
pub trait KernelAccess: Sealed {}

/// A declared [read](super::task::TaskBuilder::read).
#[derive(Clone, Debug)]
pub struct Read<T, const D: usize, M> {
    pub(crate) buffer: Buffer<T, D>,
    pub(crate) mapper: M,
}

/// A declared [write](super::task::TaskBuilder::write).
#[derive(Clone, Debug)]
pub struct Write<T, const D: usize, M> {
    pub(crate) buffer: Buffer<T, D>,
    pub(crate) mapper: M,
}

/// A declared [update](super::task::TaskBuilder::update).
#[derive(Clone, Debug)]
pub struct Update<T, const D: usize, M> {
    pub(crate) buffer: Buffer<T, D>,
    pub(crate) mapper: M,
}

impl<T, const D: usize, M> Sealed for Read<T, D, M> {}
impl<T, const D: usize, M> Sealed for Write<T, D, M> {}
impl<T, const D: usize, M> Sealed for Update<T, D, M> {}
impl<T, const D: usize, M> KernelAccess for Read<T, D, M> {}
impl<T, const D: usize, M> KernelAccess for Write<T, D, M> {}
impl<T, const D: usize, M> KernelAccess for Update<T, D, M> {}

impl<T, const D: usize, M, const K: usize> Access<K> for Read<T, D, M>
where
    T: Element,
    M: RangeMapper<K, D> + 'static,
{
    type Bound = BoundBuffer<T, D>;
    type Guard<'b> = ReadView<T, D, M::Shape>;
    type View<'v> = &'v ReadView<T, D, M::Shape>;

    fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error> {
        declaration.buffer(self.buffer, self.mapper, Mode::Read)
    }

    fn attach(bound: &mut Self::Bound, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
        bound.attach(versions)
    }

    fn label(bound: &Self::Bound) -> Option<(Label, usize)> {
        Some((bound.label(), D))
    }

    #[inline(always)]
    unsafe fn guard(bound: &Self::Bound, chunk: usize) -> Self::Guard<'_> {
        // SAFETY: while the task runs, the graph lets no task write the region, whose shape was checked; the
        // caller drops the guard before `bound`.
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
    type Guard<'b> = WriteView<'b, T, D, M::Shape>;
    type View<'v> = &'v mut WriteView<'v, T, D, M::Shape>;

    fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error> {
        declaration.buffer(self.buffer, self.mapper, Mode::Write)
    }

    fn attach(bound: &mut Self::Bound, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
        bound.attach(versions)
    }

    fn label(bound: &Self::Bound) -> Option<(Label, usize)> {
        Some((bound.label(), D))
    }

    #[inline(always)]
    unsafe fn guard(bound: &Self::Bound, chunk: usize) -> Self::Guard<'_> {
        // SAFETY: while the task runs, the graph lets no other task use the region, and no other chunk or
        // access of this task overlaps it; its shape was checked; the caller drops the guard before `bound`.
        unsafe { WriteView::new(bound, chunk) }
    }

    fn view<'v>(guard: &'v mut Self::Guard<'_>) -> Self::View<'v> {
        guard.for_call()
    }

    unsafe fn prepare(bound: &Self::Bound, chunk: usize, pattern: &Pattern) {
        // SAFETY: as for `guard`, and the caller makes the guard later. Each region has this shape.
        let mut view = unsafe { WriteView::<T, D, AnyBoxes<D>>::new(bound, chunk) };
        pattern.fill(&mut view);
    }

    unsafe fn check(bound: &Self::Bound, chunk: usize, pattern: &Pattern) {
        // SAFETY: as for `guard`, and the caller has dropped the guard. Each region has this shape.
        let view = unsafe { ReadView::<T, D, AnyBoxes<D>>::new(bound, chunk) };
        if let Err(unwritten) = pattern.check(&view) {
            unwritten.throw();
        }
    }
}

impl<T, const D: usize, M, const K: usize> Access<K> for Update<T, D, M>
where
    T: Element,
    M: RangeMapper<K, D> + 'static,
{
    type Bound = BoundBuffer<T, D>;
    type Guard<'b> = UpdateView<'b, T, D, M::Shape>;
    type View<'v> = &'v mut UpdateView<'v, T, D, M::Shape>;

    fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error> {
        declaration.buffer(self.buffer, self.mapper, Mode::Update)
    }

    fn attach(bound: &mut Self::Bound, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
        bound.attach(versions)
    }

    fn label(bound: &Self::Bound) -> Option<(Label, usize)> {
        Some((bound.label(), D))
    }

    #[inline(always)]
    unsafe fn guard(bound: &Self::Bound, chunk: usize) -> Self::Guard<'_> {
        // SAFETY: while the task runs, the graph lets no other task use the region, and no other chunk or
        // access of this task overlaps it; its shape was checked; the caller drops the guard before `bound`.
        unsafe { UpdateView::new(bound, chunk) }
    }

    fn view<'v>(guard: &'v mut Self::Guard<'_>) -> Self::View<'v> {
        guard.for_call()
    }
}
