//! Captures: values that leave the stream of tasks, as copies by a fence or at a barrier, or moved out by
//! `drain`.

pub(crate) mod barrier;
pub(crate) mod fence;
mod parts;

use super::access::{
    Access, Read,
    effect::{Effect, Observe, PartEffect, Sequential},
    list::AccessList,
    sealed::Sealed,
};
use crate::{
    data::{
        buffer::{Buffer, Part},
        cluster_object::{ClusterCapture, ClusterObject},
        element::Element,
        host_object::{HostObject, ObjectCapture, ObjectMut},
        snapshot::Snapshot,
        view::ReadView,
    },
    error::Error,
};
use anabranch_grid::{AnyBoxes, Fixed, Region, fixed};

/// Whether captures copy or move.
pub trait CaptureMode: Sealed + 'static {}

/// Captures that copy: those of [`fence`](crate::Runtime::fence) and
/// [`barrier_with`](crate::Runtime::barrier_with).
#[derive(Debug)]
pub struct Copies;

/// Captures that move host objects out: those of [`drain`](crate::Runtime::drain).
#[derive(Debug)]
pub struct Moves;

impl Sealed for Copies {}
impl Sealed for Moves {}
impl CaptureMode for Copies {}
impl CaptureMode for Moves {}

/// The time that a capture may take.
#[derive(Clone, Copy, Debug)]
pub enum Weight {
    /// The time to copy this many bytes.
    Bytes(usize),
    /// The time of a `Clone` of the program.
    Unknown,
}

impl Weight {
    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Bytes(a), Self::Bytes(b)) => Self::Bytes(a.saturating_add(b)),
            _ => Self::Unknown,
        }
    }
}

/// A buffer, a part of a buffer or a host object that is captured.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be captured",
    label = "not a capture",
    note = "capture a buffer or a host object by `.capture()`, a part of a buffer by `.part(range)`, or a tuple of up to eight of \
            these; a copy of a host object needs `Clone`"
)]
pub trait Capture<M: CaptureMode>: Sealed + 'static {
    /// The captured value.
    type Output: Send + 'static;
    /// The access through which the value is reached.
    #[doc(hidden)]
    type Access: Access<0>;

    /// The access.
    #[doc(hidden)]
    fn access(self) -> Result<Self::Access, Error>;

    /// The time that taking the value may take.
    #[doc(hidden)]
    fn weight(&self) -> Weight;

    /// Checks that there is a value: of several captures none is taken if one has no value.
    #[doc(hidden)]
    fn check(_: &<Self::Access as Access<0>>::Guard<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Takes the value.
    #[doc(hidden)]
    fn take(guard: <Self::Access as Access<0>>::Guard<'_>) -> Result<Self::Output, Error>;
}

impl<T, const D: usize> Sealed for Part<T, D> {}
impl<T> Sealed for ObjectCapture<T> {}
impl<T> Sealed for ClusterCapture<T> {}

impl<M: CaptureMode, T: Element, const D: usize> Capture<M> for Part<T, D> {
    type Output = Snapshot<T, D>;
    type Access = Read<T, D, Fixed<Region<D>>>;

    fn access(self) -> Result<Self::Access, Error> {
        let Self { buffer, range } = self;
        let mapper = fixed(buffer.inner.part(range)?);
        Ok(Read { buffer, mapper })
    }

    fn weight(&self) -> Weight {
        Weight::Bytes(self.range.len().saturating_mul(size_of::<T>()))
    }

    fn take(view: ReadView<T, D, AnyBoxes<D>>) -> Result<Self::Output, Error> {
        Ok(Snapshot::of(&view))
    }
}

impl<T: Clone + Send + 'static> Capture<Copies> for ObjectCapture<T> {
    type Output = T;
    type Access = Effect<T, Observe>;

    fn access(self) -> Result<Self::Access, Error> {
        Ok(Effect::on(self.object))
    }

    fn weight(&self) -> Weight {
        Weight::Unknown
    }

    fn take(value: ObjectMut<'_, T>) -> Result<T, Error> {
        value.clone().ok_or_else(|| value.moved_out())
    }
}

impl<T: Send + 'static> Capture<Moves> for ObjectCapture<T> {
    type Output = T;
    type Access = Effect<T, Sequential>;

    fn access(self) -> Result<Self::Access, Error> {
        Ok(Effect::on(self.object))
    }

    fn weight(&self) -> Weight {
        Weight::Bytes(size_of::<T>())
    }

    fn check(value: &ObjectMut<'_, T>) -> Result<(), Error> {
        if value.is_some() { Ok(()) } else { Err(value.moved_out()) }
    }

    fn take(mut value: ObjectMut<'_, T>) -> Result<T, Error> {
        value.take().ok_or_else(|| value.moved_out())
    }
}

impl<T: Clone + Send + 'static> Capture<Copies> for ClusterCapture<T> {
    type Output = Option<T>;
    type Access = PartEffect<T, Observe>;

    fn access(self) -> Result<Self::Access, Error> {
        Ok(PartEffect::on(self.object))
    }

    fn weight(&self) -> Weight {
        Weight::Unknown
    }

    fn take(value: ObjectMut<'_, T>) -> Result<Option<T>, Error> {
        value.check_home()?;
        Ok(value.clone())
    }
}

impl<T: Send + 'static> Capture<Moves> for ClusterCapture<T> {
    type Output = Option<T>;
    type Access = PartEffect<T, Sequential>;

    fn access(self) -> Result<Self::Access, Error> {
        Ok(PartEffect::on(self.object))
    }

    fn weight(&self) -> Weight {
        Weight::Bytes(size_of::<T>())
    }

    fn check(value: &ObjectMut<'_, T>) -> Result<(), Error> {
        value.check_home()
    }

    fn take(mut value: ObjectMut<'_, T>) -> Result<Option<T>, Error> {
        Ok(value.take())
    }
}

/// One [`Capture`], or a tuple of up to eight.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be captured",
    label = "not a capture",
    note = "capture a buffer or a host object by `.capture()`, a part of a buffer by `.part(range)`, or a tuple of up to eight of \
            these; a copy of a host object needs `Clone`"
)]
pub trait Captures<M: CaptureMode>: Sealed + 'static {
    /// The value, or the tuple of values.
    type Output: Send + 'static;
    /// The accesses through which the values are reached.
    #[doc(hidden)]
    type Accesses: AccessList<0>;

    /// The accesses.
    #[doc(hidden)]
    fn accesses(self) -> Result<Self::Accesses, Error>;

    /// The time that taking the values may take.
    #[doc(hidden)]
    fn weight(&self) -> Weight;

    /// Takes the values.
    #[doc(hidden)]
    fn take(guards: <Self::Accesses as AccessList<0>>::Guards<'_>) -> Result<Self::Output, Error>;
}

macro_rules! one_capture {
    ($mode:ident) => {
        impl<C: Capture<$mode>> Captures<$mode> for C {
            type Output = C::Output;
            type Accesses = (C::Access,);

            fn accesses(self) -> Result<Self::Accesses, Error> {
                Ok((self.access()?,))
            }

            fn weight(&self) -> Weight {
                Capture::weight(self)
            }

            fn take((guard,): (<C::Access as Access<0>>::Guard<'_>,)) -> Result<Self::Output, Error> {
                C::take(guard)
            }
        }
    };
}

// Not for all modes at once: the compiler would not rule out that tuples are captures of some other mode.
one_capture!(Copies);
one_capture!(Moves);

macro_rules! captures {
    ($($capture:ident $i:tt),*) => {
        captures!(@ Copies: $($capture $i),*);
        captures!(@ Moves: $($capture $i),*);
    };
    (@ $mode:ident: $($capture:ident $i:tt),*) => {
        #[allow(unused_variables, clippy::unused_unit)]
        impl<$($capture: Capture<$mode>),*> Captures<$mode> for ($($capture,)*) {
            type Output = ($($capture::Output,)*);
            type Accesses = ($($capture::Access,)*);

            fn accesses(self) -> Result<Self::Accesses, Error> {
                Ok(($(self.$i.access()?,)*))
            }

            fn weight(&self) -> Weight {
                Weight::Bytes(0)$(.plus(Capture::weight(&self.$i)))*
            }

            fn take(guards: <Self::Accesses as AccessList<0>>::Guards<'_>) -> Result<Self::Output, Error> {
                $($capture::check(&guards.$i)?;)*
                Ok(($($capture::take(guards.$i)?,)*))
            }
        }
    };
}

captures!();
captures!(A 0);
captures!(A 0, B 1);
captures!(A 0, B 1, C 2);
captures!(A 0, B 1, C 2, D 3);
captures!(A 0, B 1, C 2, D 3, E 4);
captures!(A 0, B 1, C 2, D 3, E 4, F 5);
captures!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
captures!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

/// An argument of [`fence`](crate::Runtime::fence): a reference to a buffer, to a [part](crate::Buffer::part)
/// of a buffer, to [parts](crate::Buffer::parts) for nodes or to a host object whose type is `Clone`, or a
/// tuple of up to eight such references.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be copied by a fence",
    label = "not for fences",
    note = "pass a reference to a buffer, to a part of a buffer or to a host object whose type is `Clone`, or a tuple of up to \
            eight such references"
)]
pub trait Fenceable {
    /// The captures that the argument stands for.
    type Captures: Captures<Copies>;

    /// Converts the argument.
    fn captures(self) -> Self::Captures;
}

impl<T: Element, const D: usize> Fenceable for &Buffer<T, D> {
    type Captures = Part<T, D>;

    fn captures(self) -> Part<T, D> {
        self.capture()
    }
}

impl<T: Element, const D: usize> Fenceable for &Part<T, D> {
    type Captures = Part<T, D>;

    fn captures(self) -> Part<T, D> {
        self.clone()
    }
}

impl<T: Clone + Send + 'static> Fenceable for &HostObject<T> {
    type Captures = ObjectCapture<T>;

    fn captures(self) -> ObjectCapture<T> {
        self.capture()
    }
}

impl<T: Clone + Send + 'static> Fenceable for &ClusterObject<T> {
    type Captures = ClusterCapture<T>;

    fn captures(self) -> ClusterCapture<T> {
        self.capture()
    }
}

macro_rules! fenceable {
    ($($what:ident $i:tt),*) => {
        impl<$($what: Fenceable<Captures: Capture<Copies>>),*> Fenceable for ($($what,)*) {
            type Captures = ($($what::Captures,)*);

            fn captures(self) -> Self::Captures {
                ($(self.$i.captures(),)*)
            }
        }
    };
}

fenceable!(A 0);
fenceable!(A 0, B 1);
fenceable!(A 0, B 1, C 2);
fenceable!(A 0, B 1, C 2, D 3);
fenceable!(A 0, B 1, C 2, D 3, E 4);
fenceable!(A 0, B 1, C 2, D 3, E 4, F 5);
fenceable!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
fenceable!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
