//! Views of regions that a task reads and changes.

use super::{
    super::{bound::BoundBuffer, element::Element},
    read::ReadView,
    write::WriteView,
};
use anabranch_grid::{OneBox, RegionShape};
use std::{
    fmt,
    ops::{Deref, DerefMut, Index, IndexMut},
    ptr,
};

/// A region that a task declared to [update](crate::interface::TaskBuilder::update), as its kernel sees it.
///
/// It can be indexed, and does all that a [`WriteView`] does. [`as_read`](Self::as_read) gives slices and
/// arrays for reading.
///
/// Indices are those of the buffer. Access to a point outside the declared region ends the task with an error
/// that names the buffer, the point and the region.
///
/// `S` is the [shape](anabranch_grid::RangeMapper::Shape) that the range mapper promises: see [`ReadView`].
///
/// ```
/// use anabranch::prelude::*;
///
/// let rt = Runtime::new()?;
/// let u = rt.buffer_from(&[1.0, 2.0, 3.0])?;
/// rt.task("double the last").once().update(&u, all()).host(|(u,)| u[[2]] *= 2.0)?;
/// rt.task("add the first").once().update(&u, all()).host(|(u,)| {
///     let sum: f64 = u.as_read().run([1]).iter().sum();
///     u[[0]] += sum;
/// })?;
/// assert_eq!(rt.fence(&u)?.wait()?.as_slice(), [9.0, 2.0, 6.0]);
/// # Ok::<(), Error>(())
/// ```
pub struct UpdateView<'v, T, const D: usize, S = OneBox<D>> {
    view: WriteView<'v, T, D, S>,
}

impl<T: Element, const D: usize, S: RegionShape<D>> UpdateView<'_, T, D, S> {
    /// # Safety
    /// See [`WriteView::new`].
    #[inline(always)]
    pub(crate) unsafe fn new(bound: &BoundBuffer<T, D>, chunk: usize) -> Self {
        // SAFETY: the caller promises it.
        Self { view: unsafe { WriteView::new(bound, chunk) } }
    }

    /// The view for one call.
    #[inline]
    pub(crate) fn for_call<'v>(&'v mut self) -> &'v mut UpdateView<'v, T, D, S> {
        // SAFETY: see `WriteView::for_call`.
        unsafe { &mut *ptr::from_mut(self).cast() }
    }

    /// The region as a task that reads it sees it.
    #[inline]
    pub fn as_read(&self) -> &ReadView<T, D, S> {
        ReadView::of(&self.view.raw)
    }
}

impl<'v, T, const D: usize, S> Deref for UpdateView<'v, T, D, S> {
    type Target = WriteView<'v, T, D, S>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.view
    }
}

impl<T, const D: usize, S> DerefMut for UpdateView<'_, T, D, S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.view
    }
}

impl<T: Element, const D: usize, S: RegionShape<D>> Index<[usize; D]> for UpdateView<'_, T, D, S> {
    type Output = T;

    #[inline]
    fn index(&self, point: [usize; D]) -> &T {
        &self.as_read()[point]
    }
}

impl<T: Element, const D: usize, S: RegionShape<D>> IndexMut<[usize; D]> for UpdateView<'_, T, D, S> {
    #[inline]
    fn index_mut(&mut self, point: [usize; D]) -> &mut T {
        let raw = &self.view.raw;
        raw.check(point);
        // SAFETY: the point is in the region, of which this view, borrowed meanwhile, is the only user.
        unsafe { &mut *raw.at(point) }
    }
}

impl<T: Element, const D: usize, S: RegionShape<D>> fmt::Debug for UpdateView<'_, T, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpdateView({} {})", self.view.raw.bound().label(), self.view.raw.region())
    }
}
