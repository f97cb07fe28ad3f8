//! Declared accesses: what a task says about each buffer and host object, and what it gets to see of it.
//!
//! A task's accesses are a tuple, in the order of their declaration; the kernel gets the views as a tuple of the same
//! shape. An access goes through three states: *declared* (this module's structs, with the range mapper), *bound*
//! (regions of all chunks computed and checked, memory attached) and, for the time of one call, *viewed*.

use crate::{
    buffer::{Buffer, Label},
    declare::Declaration,
    element::Element,
    error::Error,
    host_object::{HostObject, Shared, Unique},
    memory::Start,
    view::{ReadView, WriteView},
};
use anabranch_graph::{Mode, Order};
use anabranch_grid::{Extent, RangeMapper, Region};
use smallvec::SmallVec;
use std::marker::PhantomData;

/// One declared access of a task over a `K`-dimensional index space.
pub trait Access<const K: usize>: 'static {
    /// The access with its regions computed and its memory attached.
    type Bound: Send + Sync + 'static;
    /// What must be held while a view exists.
    type Guard<'b>;
    /// What the kernel or host function gets.
    type View<'v>;

    /// Whether the access is a reduction: chunks then give the shape of its tree.
    #[doc(hidden)]
    const REDUCES: bool = false;

    /// Computes and checks the regions of all chunks, and tells the declaration about them.
    #[doc(hidden)]
    fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error>;

    /// Attaches the memory of the version that the graph has chosen, taking it from the iterator.
    #[doc(hidden)]
    fn attach(bound: &mut Self::Bound, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error>;

    /// The buffer, and its rank, for error messages.
    #[doc(hidden)]
    fn label(bound: &Self::Bound) -> Option<(Label, usize)>;

    /// Opens the access for chunk `chunk`.
    ///
    /// # Safety
    /// Memory is attached; the task runs now, when the graph allows it; no other guard for this chunk exists.
    #[doc(hidden)]
    unsafe fn guard(bound: &Self::Bound, chunk: usize) -> Self::Guard<'_>;

    /// The view, for the time that the guard is borrowed.
    #[doc(hidden)]
    fn view<'v>(guard: &'v mut Self::Guard<'_>) -> Self::View<'v>;

    /// Is called once when all chunks are done.
    ///
    /// # Safety
    /// Memory is attached; the task runs now, when the graph allows it; there is no guard.
    #[doc(hidden)]
    unsafe fn finish(_: &Self::Bound) {}
}

/// Accesses that a kernel may have: to buffers. (A kernel runs on several threads at once; effects on host objects are
/// for host tasks.)
pub trait KernelAccess {}

/// A declared [read](crate::TaskBuilder::read).
#[derive(Debug)]
pub struct Read<T, const D: usize, M> {
    pub(crate) buffer: Buffer<T, D>,
    pub(crate) mapper: M,
}

/// A declared [write](crate::TaskBuilder::write) or [update](crate::TaskBuilder::update).
#[derive(Debug)]
pub struct Write<T, const D: usize, M> {
    pub(crate) buffer: Buffer<T, D>,
    pub(crate) mapper: M,
    pub(crate) mode: Mode,
}

/// A declared [effect](crate::TaskBuilder::effect).
#[derive(Debug)]
pub struct Effect<T, O> {
    pub(crate) object: HostObject<T>,
    pub(crate) _order: PhantomData<O>,
}

/// The order of [`sequential()`] effects.
#[derive(Clone, Copy, Debug)]
pub struct Sequential;

/// The order of [`exclusive()`] effects.
#[derive(Clone, Copy, Debug)]
pub struct Exclusive;

/// The order of [`relaxed()`] effects.
#[derive(Clone, Copy, Debug)]
pub struct Relaxed;

/// The order of fences: like [`Sequential`], but what comes after one does not depend on it.
#[derive(Clone, Copy, Debug)]
pub struct Observe;

/// The effect of a task that is ordered, in the order of submission, against every other effect on the same object,
/// and gets `&mut` to it. See [the guide](crate::guide::orders) on all orders.
pub fn sequential() -> Sequential {
    Sequential
}

/// The effect of a task that gets `&mut` to the object while no other task has it, in an order that is not specified
/// against other exclusive and relaxed effects: the program's word that the order does not matter. No thread waits for
/// the object: of the tasks that could run, those are started that do not get into each other's way. See
/// [the guide](crate::guide::orders) on all orders.
pub fn exclusive() -> Exclusive {
    Exclusive
}

/// The effect of a task that gets `&` to the object, at the same time as other tasks with relaxed effects: for objects
/// that synchronise themselves, and for looking without changing. See [the guide](crate::guide::orders) on all orders.
pub fn relaxed() -> Relaxed {
    Relaxed
}

/// A buffer access with its regions, and once it is attached its memory.
#[derive(Debug)]
pub struct BoundBuffer<T, const D: usize> {
    buffer: Buffer<T, D>,
    /// One for each chunk.
    pub(crate) regions: Regions<D>,
    start: Start<T>,
}

pub(crate) type Regions<const D: usize> = SmallVec<[Region<D>; 1]>;

impl<T: Element, const D: usize> BoundBuffer<T, D> {
    pub(crate) fn new(buffer: Buffer<T, D>, regions: Regions<D>) -> Self {
        Self { buffer, regions, start: Start::NONE }
    }

    #[inline]
    pub(crate) fn start(&self) -> *mut T {
        self.start.get()
    }

    #[inline]
    pub(crate) fn extent(&self) -> Extent<D> {
        self.buffer.inner.extent
    }

    pub(crate) fn label(&self) -> Label {
        self.buffer.inner.label()
    }

    fn attach(&mut self, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
        let version = versions.next().expect("a version for every access");
        // It stays there as long as `buffer` does.
        self.start = self.buffer.memory(version)?;
        Ok(())
    }
}

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
        // SAFETY: the graph lets nobody write the region now; the caller drops the guard before `bound`.
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
        // SAFETY: the graph lets no other task use the region now, and no other chunk or access of this task
        // overlaps it; the caller drops the guard before `bound`.
        unsafe { WriteView::new(bound, chunk) }
    }

    fn view<'v>(guard: &'v mut Self::Guard<'_>) -> Self::View<'v> {
        guard.for_call()
    }
}

/// The guards of effects are locks that are always free: the graph and the conflicts' scheduler see to that.
macro_rules! effect {
    ($order:ident, $guard:ident, $lock:ident, $as:ident, [$($view:tt)*], [$($bound:tt)*]) => {
        impl<T: Send $($bound)* + 'static, const K: usize> Access<K> for Effect<T, $order> {
            type Bound = HostObject<T>;
            type Guard<'b> = $guard<'b, T>;
            type View<'v> = &'v $($view)* T;

            fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error> {
                declaration.object(&self.object.inner, Order::$order)?;
                Ok(self.object)
            }

            fn attach(_: &mut Self::Bound, _: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
                Ok(())
            }

            fn label(_: &Self::Bound) -> Option<(Label, usize)> {
                None
            }

            unsafe fn guard(bound: &Self::Bound, _: usize) -> Self::Guard<'_> {
                bound.inner.$lock()
            }

            fn view<'v>(guard: &'v mut Self::Guard<'_>) -> Self::View<'v> {
                guard.$as().expect("a host object is there until it is captured")
            }
        }
    };
}

effect!(Sequential, Unique, lock, as_mut, [mut], []);
effect!(Observe, Unique, lock, as_mut, [mut], []);
effect!(Exclusive, Unique, lock, as_mut, [mut], []);
effect!(Relaxed, Shared, share, as_ref, [], [+ Sync]);

impl<T, const D: usize, M> KernelAccess for Read<T, D, M> {}
impl<T, const D: usize, M> KernelAccess for Write<T, D, M> {}

/// The accesses of a task: a tuple of up to eight.
pub trait AccessList<const K: usize>: 'static {
    /// All of them, bound.
    type Bound: Send + Sync + 'static;
    /// All guards.
    type Guards<'b>;
    /// All views.
    type Views<'v>;
    /// See [`Access::REDUCES`].
    #[doc(hidden)]
    const REDUCES: bool;

    /// See [`Access::declare`].
    #[doc(hidden)]
    fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error>;

    /// See [`Access::attach`].
    #[doc(hidden)]
    fn attach(bound: &mut Self::Bound, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error>;

    /// See [`Access::label`]: of the buffers only.
    #[doc(hidden)]
    fn labels(bound: &Self::Bound) -> Vec<(Label, usize)>;

    /// See [`Access::guard`].
    ///
    /// # Safety
    /// As there.
    #[doc(hidden)]
    unsafe fn guards(bound: &Self::Bound, chunk: usize) -> Self::Guards<'_>;

    /// See [`Access::view`].
    #[doc(hidden)]
    fn views<'v>(guards: &'v mut Self::Guards<'_>) -> Self::Views<'v>;

    /// See [`Access::finish`].
    ///
    /// # Safety
    /// As there.
    #[doc(hidden)]
    unsafe fn finish(bound: &Self::Bound);
}

/// Lists of accesses that a kernel may have.
pub trait KernelAccessList {}

/// A list with room for one more access.
pub trait Append<A> {
    /// The longer list.
    type Longer;

    /// Adds the access at the end.
    fn append(self, access: A) -> Self::Longer;
}

macro_rules! access_list {
    ($($access:ident),*) => {
        #[allow(non_snake_case, unused_unsafe, unused_variables, clippy::unused_unit)]
        impl<const K: usize, $($access: Access<K>),*> AccessList<K> for ($($access,)*) {
            type Bound = ($($access::Bound,)*);
            type Guards<'b> = ($($access::Guard<'b>,)*);
            type Views<'v> = ($($access::View<'v>,)*);
            const REDUCES: bool = false $(|| $access::REDUCES)*;

            fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error> {
                let ($($access,)*) = self;
                Ok(($($access.declare(declaration)?,)*))
            }

            fn attach(bound: &mut Self::Bound, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
                let ($($access,)*) = bound;
                $(<Self as List<K>>::attach_one::<$access>($access, versions)?;)*
                Ok(())
            }

            fn labels(bound: &Self::Bound) -> Vec<(Label, usize)> {
                let ($($access,)*) = bound;
                let labels: [Option<(Label, usize)>; _] = [$(<Self as List<K>>::label_one::<$access>($access),)*];
                labels.into_iter().flatten().collect()
            }

            unsafe fn guards(bound: &Self::Bound, chunk: usize) -> Self::Guards<'_> {
                let ($($access,)*) = bound;
                // SAFETY: the caller vouches for what each access asks.
                unsafe { ($(<Self as List<K>>::guard_one::<$access>($access, chunk),)*) }
            }

            fn views<'v>(guards: &'v mut Self::Guards<'_>) -> Self::Views<'v> {
                let ($($access,)*) = guards;
                ($(<Self as List<K>>::view_one::<$access>($access),)*)
            }

            unsafe fn finish(bound: &Self::Bound) {
                let ($($access,)*) = bound;
                // SAFETY: the caller vouches for what each access asks.
                unsafe { $(<Self as List<K>>::finish_one::<$access>($access);)* }
            }
        }

        impl<$($access: KernelAccess),*> KernelAccessList for ($($access,)*) {}
    };
}

/// Calls on one access by its type: in the macro, variables and types share their names.
trait List<const K: usize> {
    fn attach_one<A: Access<K>>(
        bound: &mut A::Bound,
        versions: &mut dyn Iterator<Item = u32>,
    ) -> Result<(), Error> {
        A::attach(bound, versions)
    }

    fn label_one<A: Access<K>>(bound: &A::Bound) -> Option<(Label, usize)> {
        A::label(bound)
    }

    unsafe fn guard_one<A: Access<K>>(bound: &A::Bound, chunk: usize) -> A::Guard<'_> {
        // SAFETY: the caller vouches.
        unsafe { A::guard(bound, chunk) }
    }

    unsafe fn finish_one<A: Access<K>>(bound: &A::Bound) {
        // SAFETY: the caller vouches.
        unsafe { A::finish(bound) }
    }

    fn view_one<'v, A: Access<K>>(guard: &'v mut A::Guard<'_>) -> A::View<'v> {
        A::view(guard)
    }
}

impl<L, const K: usize> List<K> for L {}

macro_rules! append {
    ($($access:ident),*) => {
        #[allow(non_snake_case)]
        impl<New, $($access),*> Append<New> for ($($access,)*) {
            type Longer = ($($access,)* New,);

            fn append(self, access: New) -> Self::Longer {
                let ($($access,)*) = self;
                ($($access,)* access,)
            }
        }
    };
}

access_list!();
access_list!(A0);
access_list!(A0, A1);
access_list!(A0, A1, A2);
access_list!(A0, A1, A2, A3);
access_list!(A0, A1, A2, A3, A4);
access_list!(A0, A1, A2, A3, A4, A5);
access_list!(A0, A1, A2, A3, A4, A5, A6);
access_list!(A0, A1, A2, A3, A4, A5, A6, A7);
append!();
append!(A0);
append!(A0, A1);
append!(A0, A1, A2);
append!(A0, A1, A2, A3);
append!(A0, A1, A2, A3, A4);
append!(A0, A1, A2, A3, A4, A5);
append!(A0, A1, A2, A3, A4, A5, A6);
