//! Buffers: virtual arrays that tasks share.
//!
//! A buffer may have several *versions*, each with an allocation of its own. The task graph decides which
//! version a task uses. A task that overwrites the whole buffer while others still read the former contents
//! takes another version, up to the bound that the program allows, instead of waiting.

use super::{
    allocation::{Allocation, Start},
    element::Element,
    owner::Owner,
};
use crate::{error::Error, label::Label};
use anabranch_graph::BufferId;
use anabranch_grid::{Extent, GridBox, Region};
use parking_lot::Mutex;
use std::{
    fmt,
    marker::PhantomData,
    ptr,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{
            AtomicPtr,
            Ordering::{Acquire, Release},
        },
    },
};

/// A handle to a `D`-dimensional array of plain data, whose contents belong to the runtime.
///
/// Handles are cheap to clone and to swap: all clones refer to the same array. The memory is freed when the
/// last handle is dropped and the last task that uses it has ended. Only tasks, fences and captures reach the
/// contents.
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
///             doubled.set([i], 2.0 * u[[i]]);
///         }
///     })?;
/// assert_eq!(rt.fence(&doubled)?.wait()?.as_slice(), [2.0, 4.0, 6.0]);
/// # Ok::<(), anabranch::Error>(())
/// ```
pub struct Buffer<T, const D: usize> {
    pub(crate) inner: Arc<BufferInner<D>>,
    _elements: PhantomData<fn() -> T>,
}

impl<T, const D: usize> Clone for Buffer<T, D> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), _elements: PhantomData }
    }
}

/// The state that all handles of a buffer share.
pub(crate) struct BufferInner<const D: usize> {
    pub(crate) id: BufferId,
    /// Names the buffer in messages, if the program does not: the first buffer or object of a runtime is
    /// number 1.
    number: u64,
    pub(crate) extent: Extent<D>,
    /// The number of bytes of an element.
    pub(super) element: usize,
    pub(crate) owner: Weak<dyn Owner>,
    label: OnceLock<Label>,
    /// The memory of each version. It is allocated when a task that uses it is first submitted, and freed
    /// with the buffer.
    versions: Mutex<Vec<Option<Allocation>>>,
    /// The address of version 0, once it is allocated, to be read without the lock: most buffers have no
    /// other version.
    first: AtomicPtr<u8>,
}

impl<const D: usize> BufferInner<D> {
    /// The name of the buffer in messages.
    pub(crate) fn label(&self) -> Label {
        self.label.get_or_init(|| Label::numbered(self.number)).clone()
    }

    /// A box to be captured.
    ///
    /// # Errors
    /// [`Error::NoSuchPart`] if it does not lie inside the buffer.
    pub(crate) fn part(&self, range: GridBox<D>) -> Result<Region<D>, Error> {
        if GridBox::full(self.extent).contains(&range) {
            return Ok(range.into());
        }
        let (buffer, extent) = (self.label(), self.extent.to_string());
        Err(Error::NoSuchPart { buffer, extent, part: range.to_string() })
    }

    /// The address of the memory of a version, which is allocated at the first call. It stays there as long
    /// as the buffer.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(super) fn memory(&self, version: u32) -> Result<*mut u8, Error> {
        if version == 0 {
            // Acquire: the thread that has allocated the memory has filled it with zeros.
            let first = self.first.load(Acquire);
            if !first.is_null() {
                return Ok(first);
            }
        }
        let mut versions = self.versions.lock();
        let version = version as usize;
        if versions.len() <= version {
            versions.resize_with(version + 1, || None);
        }
        let slot = &mut versions[version];
        if slot.is_none() {
            let has_part = self.owner.upgrade().is_some_and(|owner| owner.has_several_nodes());
            let allocate = if has_part { Allocation::reserved } else { Allocation::zeroed };
            let bytes = self.extent.checked_len().and_then(|len| len.checked_mul(self.element));
            *slot = bytes.and_then(allocate);
        }
        let start = slot.as_ref().map(Allocation::start::<u8>).ok_or_else(|| self.out_of_memory())?;
        if version == 0 {
            self.first.store(start, Release);
        }
        Ok(start)
    }

    pub(crate) fn out_of_memory(&self) -> Error {
        // Saturating: this runs under the lock of the runtime's state, where nothing may panic.
        let sizes = self.extent.0.iter().map(|&n| n as u128);
        let bytes = sizes.fold(self.element as u128, u128::saturating_mul);
        Error::OutOfMemory { buffer: self.label(), bytes }
    }

    /// The address of the memory of a version, or null if it is not allocated yet. It stays there as long as
    /// the buffer.
    pub(super) fn start_of(&self, version: u32) -> *mut u8 {
        if version == 0 {
            return self.first.load(Acquire);
        }
        let versions = self.versions.lock();
        let memory = versions.get(version as usize).and_then(Option::as_ref);
        memory.map_or(ptr::null_mut(), Allocation::start::<u8>)
    }
}

impl<const D: usize> Drop for BufferInner<D> {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.upgrade() {
            owner.remove_buffer(self.id);
        }
    }
}

impl<T: Element, const D: usize> Buffer<T, D> {
    pub(crate) fn new(
        id: BufferId,
        number: u64,
        extent: Extent<D>,
        owner: Weak<dyn Owner>,
        initial: Option<Allocation>,
    ) -> Self {
        const { assert!(D <= 3, "a buffer has at most three dimensions") };
        let versions = Mutex::new(vec![initial]);
        let (label, first) = (OnceLock::new(), AtomicPtr::default());
        let element = size_of::<T>();
        let inner = BufferInner { id, number, extent, element, owner, label, versions, first };
        Self { inner: Arc::new(inner), _elements: PhantomData }
    }

    /// The memory of a version. It stays at this address as long as a handle to the buffer lives.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub(crate) fn memory(&self, version: u32) -> Result<Start<T>, Error> {
        self.inner.memory(version).map(Start::of_bytes)
    }

    /// Names the buffer, for messages and printed graphs. Only the first call has an effect.
    pub fn named(self, name: impl fmt::Display) -> Self {
        // A second name would contradict messages that were made with the first.
        let _ = self.inner.label.set(Label::named(name));
        self
    }

    /// Allows the buffer up to `versions` allocations at a time (1 by default, and at least). A task that
    /// overwrites all of the buffer while other tasks still read the former contents then takes another
    /// allocation instead of waiting for them. The bound is also how far computation may run ahead of a slow
    /// reader, such as output.
    pub fn with_versions(self, versions: usize) -> Self {
        if let Some(owner) = self.inner.owner.upgrade() {
            owner.set_versions(self.inner.id, versions);
        }
        self
    }

    /// Discards the contents: a later task that reads them before another has written them is an error.
    ///
    /// A discard makes several tasks that each write a part of the buffer, a band of rows for example, one
    /// complete overwrite. If the former contents are still being read and the buffer has
    /// [versions](Self::with_versions), these tasks take another allocation instead of waiting.
    pub fn discard(&self) {
        if let Some(owner) = self.inner.owner.upgrade() {
            owner.discard(self.inner.id);
        }
    }

    /// The number of elements along each dimension.
    pub fn extent(&self) -> Extent<D> {
        self.inner.extent
    }

    /// A part of the buffer, for [`fence`](crate::Runtime::fence),
    /// [`barrier_with`](crate::Runtime::barrier_with) and [`drain`](crate::Runtime::drain).
    pub fn part(&self, range: GridBox<D>) -> Part<T, D> {
        Part { buffer: self.clone(), range }
    }

    /// The contents after all tasks submitted so far, for [`drain`](crate::Runtime::drain) and
    /// [`barrier_with`](crate::Runtime::barrier_with).
    pub fn capture(&self) -> Part<T, D> {
        self.part(GridBox::full(self.inner.extent))
    }

    /// A part for each node, for [`fence`](crate::Runtime::fence),
    /// [`barrier_with`](crate::Runtime::barrier_with) and [`drain`](crate::Runtime::drain): node `n` gets the
    /// contents of `part(n)`. A node whose part is `None`, or empty, gets `None` and is sent nothing. On one
    /// node, `part` is called with 0 only, and in a [dry run](crate::Builder::dry_run) with each node of the
    /// dry run.
    ///
    /// The call that takes the parts calls `part` with every node, on every node: the answers must be the
    /// same everywhere. Different ones are an error on all nodes. Unlike a fence of what all nodes get, one
    /// of parts may fail on some nodes only: see [`agree_result`](crate::Runtime::agree_result).
    ///
    /// ```
    /// use anabranch::{local_nodes, prelude::*};
    ///
    /// let results = local_nodes(3).threads(1).run(|rt| {
    ///     let u = rt.buffer_from(&[1, 2, 3, 4, 5, 6])?;
    ///     // Node 0 gets nothing, node 1 the first three elements, node 2 the others.
    ///     let halves = u.parts(|node| (node > 0).then(|| GridBox::new(3 * node as usize - 3, 3 * node as usize)));
    ///     Ok(rt.fence(&halves)?.wait()?.map(|half| half.into_vec()))
    /// });
    /// let results: Vec<_> = results.into_iter().map(Result::unwrap).collect();
    /// assert_eq!(results, [None, Some(vec![1, 2, 3]), Some(vec![4, 5, 6])]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn parts(&self, part: impl Fn(u16) -> Option<GridBox<D>> + Send + Sync + 'static) -> Parts<T, D> {
        Parts { buffer: self.clone(), part: Arc::new(part), home: None }
    }

    /// The contents on one node, for [`fence`](crate::Runtime::fence),
    /// [`barrier_with`](crate::Runtime::barrier_with) and [`drain`](crate::Runtime::drain): the other nodes
    /// get `None` and are sent nothing. Of a buffer without elements, all get `None`.
    ///
    /// A node that does not exist is an error of the call that takes the capture.
    ///
    /// ```
    /// use anabranch::prelude::*;
    ///
    /// let rt = Runtime::new()?;
    /// let u = rt.buffer_from(&[1, 2, 3])?;
    /// if let Some(all) = rt.fence(&u.capture_on(0))?.wait()? {
    ///     println!("{:?}", all.as_slice()); // on any number of nodes once
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    pub fn capture_on(&self, node: u16) -> Parts<T, D> {
        let all = GridBox::full(self.inner.extent);
        let part = move |other| (other == node).then_some(all);
        Parts { home: Some(node), ..self.parts(part) }
    }
}

impl<T, const D: usize> fmt::Debug for Buffer<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.inner.label(), self.inner.extent)
    }
}

/// A box of a buffer, to be captured: see [`Buffer::part`].
#[derive(Clone, Debug)]
pub struct Part<T, const D: usize> {
    pub(crate) buffer: Buffer<T, D>,
    pub(crate) range: GridBox<D>,
}

/// A box of a buffer for each node, to be captured: see [`Buffer::parts`] and [`Buffer::capture_on`].
#[derive(Clone)]
pub struct Parts<T, const D: usize> {
    pub(crate) buffer: Buffer<T, D>,
    /// The part of each node.
    pub(crate) part: Arc<dyn Fn(u16) -> Option<GridBox<D>> + Send + Sync>,
    /// The node that the program has named, if it has.
    pub(crate) home: Option<u16>,
}

impl<T, const D: usize> fmt::Debug for Parts<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("buffer", &self.buffer)
            .field("home", &self.home)
            .finish_non_exhaustive()
    }
}
