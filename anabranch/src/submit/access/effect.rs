//! Declared effects on host objects, and their orders.

use super::{Access, sealed::Sealed};
use crate::{
    data::{
        cluster_object::ClusterObject,
        communicator::Communicator,
        host_object::{HostObject, ObjectMut, ObjectRef},
    },
    error::Error,
    label::Label,
    submit::{
        launch::declaration::Declaration,
        task::index_space::{Collective, Once, Over},
    },
};
use anabranch_graph::Order;
use anabranch_wire::MpiComm;
use std::marker::PhantomData;

/// A declared [effect](crate::submit::task::TaskBuilder::effect).
#[derive(Debug)]
pub struct Effect<T, O> {
    object: HostObject<T>,
    _order: PhantomData<O>,
}

impl<T, O> Clone for Effect<T, O> {
    fn clone(&self) -> Self {
        Self::on(self.object.clone())
    }
}

impl<T, O> Effect<T, O> {
    pub(in crate::submit) fn on(object: HostObject<T>) -> Self {
        Self { object, _order: PhantomData }
    }
}

/// A declared effect of a task in parts on a host object of the whole cluster. The part on the home reaches
/// the value.
#[derive(Debug)]
pub struct PartEffect<T, O> {
    object: ClusterObject<T>,
    _order: PhantomData<O>,
}

impl<T, O> Clone for PartEffect<T, O> {
    fn clone(&self) -> Self {
        Self::on(self.object.clone())
    }
}

impl<T, O> PartEffect<T, O> {
    pub(in crate::submit) fn on(object: ClusterObject<T>) -> Self {
        Self { object, _order: PhantomData }
    }
}

/// A declared effect of a collective task that calls functions of MPI.
#[derive(Clone, Debug)]
pub struct Communicates(Communicator);

/// The order of [`sequential()`] effects.
#[derive(Clone, Copy, Debug)]
pub struct Sequential;

/// The order of [`exclusive()`] effects.
#[derive(Clone, Copy, Debug)]
pub struct Exclusive;

/// The order of [`relaxed()`] effects.
#[derive(Clone, Copy, Debug)]
pub struct Relaxed;

/// The order of fences: like [`Sequential`], except that later tasks depend only on the end of the fence, not
/// on its success.
#[derive(Clone, Copy, Debug)]
pub struct Observe;

/// An effect in the order of submission: the task gets `&mut` to the object, before or after every other
/// effect on it. See [the guide](crate::guide::orders) on all orders.
pub fn sequential() -> Sequential {
    Sequential
}

/// An effect without an order: the task gets `&mut` to the object while no other task has it, before or after
/// other exclusive and relaxed effects. By choosing it the program promises that this order does not matter.
/// No thread waits for the object: the runtime starts ready tasks that do not conflict. See [the
/// guide](crate::guide::orders) on all orders.
pub fn exclusive() -> Exclusive {
    Exclusive
}

/// An effect without an order that shares the object: the task gets `&` to it, at the same time as other
/// tasks with relaxed effects. For objects that synchronise themselves, and for reading. See [the
/// guide](crate::guide::orders) on all orders.
pub fn relaxed() -> Relaxed {
    Relaxed
}

impl<T, O> Sealed for Effect<T, O> {}
impl<T, O> Sealed for PartEffect<T, O> {}
impl Sealed for Communicates {}
impl Sealed for Communicator {}
impl<T> Sealed for HostObject<T> {}
impl<T> Sealed for ClusterObject<T> {}

/// A host object that tasks of the kind `S` may have effects with the order `O` on: see
/// [`effect`](crate::submit::task::TaskBuilder::effect).
#[diagnostic::on_unimplemented(
    message = "a task cannot have an effect on `{Self}`",
    label = "not a host object",
    note = "effects are on a `HostObject` or a `ClusterObject`; a task with parts on several nodes has `sequential()` effects on the latter, a batch none",
    note = "a `collective` task has `sequential()` effects on a `Communicator`"
)]
pub trait HasEffects<S, O>: Sealed {
    /// The access.
    type Effect;

    /// The access.
    #[doc(hidden)]
    fn effect(&self) -> Self::Effect;

    /// The node that must run the task.
    #[doc(hidden)]
    fn place(&self) -> Option<u16> {
        None
    }
}

impl<T, S, O> HasEffects<S, O> for HostObject<T> {
    type Effect = Effect<T, O>;

    fn effect(&self) -> Self::Effect {
        Effect::on(self.clone())
    }
}

impl<T, O> HasEffects<Once, O> for ClusterObject<T> {
    type Effect = Effect<T, O>;

    fn effect(&self) -> Self::Effect {
        Effect::on(self.local.clone())
    }

    fn place(&self) -> Option<u16> {
        self.local.inner.home
    }
}

macro_rules! parts {
    ($($kind:ident),*) => {$(
        impl<T> HasEffects<$kind, Sequential> for ClusterObject<T> {
            type Effect = PartEffect<T, Sequential>;

            fn effect(&self) -> Self::Effect {
                PartEffect::on(self.clone())
            }
        }
    )*};
}

parts!(Over, Collective);

impl HasEffects<Collective, Sequential> for Communicator {
    type Effect = Communicates;

    fn effect(&self) -> Self::Effect {
        Communicates(self.clone())
    }
}

// The message is that of `Access`, which says what to do.
#[diagnostic::do_not_recommend]
impl<const K: usize> Access<K> for Communicates {
    type Bound = HostObject<Option<MpiComm>>;
    type Guard<'b> = Option<MpiComm>;
    type View<'v> = Option<MpiComm>;

    fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error> {
        let Communicator { object } = self.0;
        declaration.object(&object.inner, Order::Sequential)?;
        declaration.communicates();
        Ok(object)
    }

    fn attach(_: &mut Self::Bound, _: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
        Ok(())
    }

    fn label(_: &Self::Bound) -> Option<(Label, usize)> {
        None
    }

    unsafe fn guard(bound: &Self::Bound, _: usize) -> Self::Guard<'_> {
        *bound.inner.lock().as_ref().expect("no task and no capture takes it")
    }

    fn view<'v>(guard: &'v mut Self::Guard<'_>) -> Self::View<'v> {
        *guard
    }
}

/// The guards of effects are locks that are always free, thanks to the graph and the scheduler of conflicts.
macro_rules! effect {
    ($order:ident, $guard:ident, $lock:ident, $as:ident, [$($view:tt)*], [$($bound:tt)*]) => {
        // The message is that of `Access`, which says what to do.
        #[diagnostic::do_not_recommend]
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
                guard.$as().expect("a host object has its value until it is captured")
            }
        }
    };
}

macro_rules! part_effect {
    ($($order:ident),*) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Send + 'static, const K: usize> Access<K> for PartEffect<T, $order> {
            type Bound = HostObject<T>;
            type Guard<'b> = ObjectMut<'b, T>;
            type View<'v> = Option<&'v mut T>;

            fn declare(self, declaration: &mut Declaration<K>) -> Result<Self::Bound, Error> {
                declaration.object(&self.object.local.inner, Order::$order)?;
                Ok(self.object.local)
            }

            fn attach(_: &mut Self::Bound, _: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
                Ok(())
            }

            fn label(_: &Self::Bound) -> Option<(Label, usize)> {
                None
            }

            unsafe fn guard(bound: &Self::Bound, _: usize) -> Self::Guard<'_> {
                bound.inner.lock()
            }

            fn view<'v>(guard: &'v mut Self::Guard<'_>) -> Self::View<'v> {
                guard.as_mut()
            }
        }
    )*};
}

part_effect!(Sequential, Observe);
effect!(Sequential, ObjectMut, lock, as_mut, [mut], []);
effect!(Observe, ObjectMut, lock, as_mut, [mut], []);
effect!(Exclusive, ObjectMut, lock, as_mut, [mut], []);
effect!(Relaxed, ObjectRef, share, as_ref, [], [+ Sync]);
