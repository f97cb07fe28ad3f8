//! Buffers: virtual arrays that tasks share.

use crate::{
    core::Core,
    element::{Element, Rank, Shape},
    error::Error,
    memory::{Allocation, Start},
};
use anabranch_graph::BufferId;
use anabranch_grid::{Extent, GridBox};
use parking_lot::Mutex;
use std::{
    fmt,
    marker::PhantomData,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicPtr, Ordering::Relaxed},
    },
};

/// A handle to a `D`-dimensional array of plain data, whose contents belong to the runtime.
///
/// Handles are cheap to clone and to swap: they all mean the same array. The memory is freed when the last handle is
/// gone and the last task that uses it has ended. Contents are reached only by tasks, fences and captures.
///
/// ```
/// use anabranch::prelude::*;
///
/// let rt = Runtime::new()?;
/// let u = rt.buffer_from(&[1.0_f32, 2.0, 3.0])?.named("u");
/// let doubled = rt.buffer::<f32, 1>([3]);
/// rt.task("double")
///     .over([3])
///     .read(&u, one_to_one())
///     .write(&doubled, one_to_one())
///     .kernel(|tile, (u, doubled)| {
///         for [i] in tile.points() {
///             doubled[[i]] = 2.0 * u[[i]];
///         }
///     })?;
/// assert_eq!(rt.fence(&doubled)?.wait()?.as_slice(), [2.0, 4.0, 6.0]);
/// # Ok::<(), anabranch::Error>(())
/// ```
pub struct Buffer<T, const D: usize> {
    pub(crate) inner: Arc<Inner<D>>,
    _elements: PhantomData<fn() -> T>,
}

impl<T, const D: usize> Clone for Buffer<T, D> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), _elements: PhantomData }
    }
}

pub(crate) struct Inner<const D: usize> {
    pub(crate) id: BufferId,
    /// The how manieth of the runtime's buffers and objects it is.
    number: u64,
    pub(crate) extent: Extent<D>,
    pub(crate) core: Weak<Core>,
    name: OnceLock<Label>,
    /// By version; allocated when a task that uses it is first submitted, freed with the buffer.
    versions: Mutex<Vec<Option<Allocation>>>,
    /// Where version 0 begins, once it is allocated: most buffers have no other.
    first: AtomicPtr<u8>,
}

/// A buffer as error messages call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label(Arc<str>);

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<const D: usize> Inner<D> {
    /// Its name, or where it has none a number.
    pub(crate) fn label(&self) -> Label {
        self.name.get_or_init(|| Label(format!("buffer {}", self.number).into())).clone()
    }
}

impl<const D: usize> Drop for Inner<D> {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade() {
            core.remove_buffer(self.id);
        }
    }
}

impl<T: Element, const D: usize> Buffer<T, D> {
    pub(crate) fn new(
        id: BufferId,
        number: u64,
        extent: Extent<D>,
        core: &Arc<Core>,
        initial: Option<Allocation>,
    ) -> Self {
        let versions = Mutex::new(vec![initial]);
        let inner = Inner {
            id,
            number,
            extent,
            core: Arc::downgrade(core),
            name: OnceLock::new(),
            versions,
            first: AtomicPtr::default(),
        };
        Self { inner: Arc::new(inner), _elements: PhantomData }
    }

    /// The memory of a version, which stays where it is as long as there is a handle to the buffer.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(crate) fn memory(&self, version: u32) -> Result<Start<T>, Error> {
        if version == 0
            && let Some(start) = Start::known(self.inner.first.load(Relaxed))
        {
            return Ok(start);
        }
        let mut versions = self.inner.versions.lock();
        let version = version as usize;
        if versions.len() <= version {
            versions.resize_with(version + 1, || None);
        }
        let slot = &mut versions[version];
        if slot.is_none() {
            let len = self.inner.extent.checked_len();
            *slot = len.and_then(Allocation::zeroed::<T>);
        }
        let start: Start<T> = slot.as_ref().map(Start::of).ok_or_else(|| self.out_of_memory())?;
        if version == 0 {
            self.inner.first.store(start.get().cast(), Relaxed);
        }
        Ok(start)
    }

    pub(crate) fn out_of_memory(&self) -> Error {
        let points: u128 = self.inner.extent.0.iter().map(|&n| n as u128).product();
        Error::OutOfMemory { buffer: self.inner.label(), bytes: points * size_of::<T>() as u128 }
    }

    /// Gives the buffer a name for error messages; the first one stays.
    pub fn named(self, name: impl fmt::Display) -> Self {
        // A second name would contradict messages that were made with the first.
        let _ = self.inner.name.set(Label(format!("buffer \"{name}\"").into()));
        self
    }

    /// Allows the buffer up to `versions` allocations at a time (1 by default, and at least): a task that overwrites all
    /// of it while other tasks still read the former contents goes on with another allocation instead of waiting for
    /// them. The bound is also how far computation may run ahead of a slow reader, such as output.
    pub fn with_versions(self, versions: usize) -> Self {
        if let Some(core) = self.inner.core.upgrade() {
            core.set_versions(self.inner.id, versions);
        }
        self
    }

    /// Says that the contents are not needed any more: what reads them before they are written again is an error.
    ///
    /// That makes one complete overwrite of several tasks that each write a part, a band of rows each, say: where the
    /// former contents are still being read and the buffer has [versions](Self::with_versions), they go on with another
    /// allocation instead of waiting.
    pub fn discard(&self) {
        if let Some(core) = self.inner.core.upgrade() {
            core.discard(self.inner.id);
        }
    }

    /// The number of elements along each dimension.
    pub fn extent(&self) -> Extent<D> {
        self.inner.extent
    }

    /// A part of the buffer, for [`fence`](crate::Runtime::fence), [`barrier_with`](crate::Runtime::barrier_with) and
    /// [`drain`](crate::Runtime::drain).
    pub fn part(&self, range: GridBox<D>) -> Part<T, D> {
        Part { buffer: self.clone(), range }
    }

    /// The contents as they are after all tasks submitted so far, for [`drain`](crate::Runtime::drain) and [`barrier_with`](crate::Runtime::barrier_with).
    pub fn capture(&self) -> Part<T, D> {
        self.part(GridBox::full(self.inner.extent))
    }
}

impl<T, const D: usize> fmt::Debug for Buffer<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.inner.label(), self.inner.extent)
    }
}

/// A box of a buffer.
#[derive(Clone, Debug)]
pub struct Part<T, const D: usize> {
    pub(crate) buffer: Buffer<T, D>,
    pub(crate) range: GridBox<D>,
}

/// What a buffer can be made from: a slice or `Vec` (1-D), or an `ndarray` array of 0 to 3 dimensions.
pub trait Initial<const D: usize> {
    /// The type of the elements.
    type Element: Element;

    /// The extent that the buffer will have.
    fn extent(&self) -> Extent<D>;

    /// Copies all elements, in row-major order.
    fn copy_to(&self, target: &mut [Self::Element]);
}

impl<T: Element> Initial<1> for [T] {
    type Element = T;
    fn extent(&self) -> Extent<1> {
        Extent([self.len()])
    }
    fn copy_to(&self, target: &mut [T]) {
        target.copy_from_slice(self);
    }
}

impl<T: Element, const N: usize> Initial<1> for [T; N] {
    type Element = T;
    fn extent(&self) -> Extent<1> {
        Extent([N])
    }
    fn copy_to(&self, target: &mut [T]) {
        target.copy_from_slice(self);
    }
}

impl<T: Element> Initial<1> for Vec<T> {
    type Element = T;
    fn extent(&self) -> Extent<1> {
        Extent([self.len()])
    }
    fn copy_to(&self, target: &mut [T]) {
        target.copy_from_slice(self);
    }
}

macro_rules! initial_from_array {
    ($($rank:literal),*) => {$(
        impl<T, S> Initial<$rank> for ndarray::ArrayBase<S, <Rank as Shape<$rank>>::Dim>
        where
            T: Element,
            S: ndarray::Data<Elem = T>,
        {
            type Element = T;
            fn extent(&self) -> Extent<$rank> {
                Extent(std::array::from_fn(|d| self.shape()[d]))
            }
            fn copy_to(&self, target: &mut [T]) {
                // `iter` is row-major whatever the array's own layout.
                target.iter_mut().zip(self).for_each(|(to, from)| *to = *from);
            }
        }
    )*};
}

initial_from_array!(0, 1, 2, 3);

/// The memory of a new buffer of this extent, filled; `None` where there is none.
pub(crate) fn filled<const D: usize, I: Initial<D> + ?Sized>(
    initial: &I,
    extent: Extent<D>,
) -> Option<Allocation> {
    let len = extent.checked_len()?;
    let mut memory = Allocation::zeroed::<I::Element>(len)?;
    initial.copy_to(memory.values_mut(len));
    Some(memory)
}
