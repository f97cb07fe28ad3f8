//! What can be taken out of the stream of tasks: by a fence or at a barrier as a copy, at the end by value.

use crate::{
    access::{Access, AccessList, Effect, Observe, Read, Sequential},
    buffer::{Buffer, Part},
    element::Element,
    error::Error,
    fence::Weight,
    host_object::{HostObject, Taken, Unique},
    snapshot::Snapshot,
    view::ReadView,
};
use anabranch_grid::{Fixed, GridBox, fixed};
use std::marker::PhantomData;

/// Captures that leave what they capture: those of [`fence`](crate::Runtime::fence) and
/// [`barrier_with`](crate::Runtime::barrier_with).
#[derive(Debug)]
pub struct Copies;

/// Captures that may move what they capture: those of [`drain`](crate::Runtime::drain).
#[derive(Debug)]
pub struct Moves;

/// A buffer, a part of one or a host object whose value is asked for.
pub trait Capture<M>: 'static {
    /// What comes out.
    type Output: Send + 'static;
    /// How it is reached.
    #[doc(hidden)]
    type Access: Access<0>;

    /// The access.
    #[doc(hidden)]
    fn access(self) -> Result<Self::Access, Error>;

    /// How long taking it may take.
    #[doc(hidden)]
    fn weight(&self) -> Weight;

    /// Whether it is there: of several captures none is taken unless all are.
    #[doc(hidden)]
    fn check(_: &<Self::Access as Access<0>>::Guard<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// Takes it, when its turn has come.
    #[doc(hidden)]
    fn take(guard: <Self::Access as Access<0>>::Guard<'_>) -> Result<Self::Output, Error>;
}

impl<M: 'static, T: Element, const D: usize> Capture<M> for Part<T, D> {
    type Output = Snapshot<T, D>;
    type Access = Read<T, D, Fixed<D>>;

    fn access(self) -> Result<Self::Access, Error> {
        let Self { buffer, range } = self;
        if !GridBox::full(buffer.extent()).contains(&range) {
            let (label, extent) = (buffer.inner.label(), buffer.extent().to_string());
            return Err(Error::NoSuchPart { buffer: label, extent, part: range.to_string() });
        }
        Ok(Read { buffer, mapper: fixed(range) })
    }

    fn weight(&self) -> Weight {
        Weight::Bytes(self.range.len().saturating_mul(size_of::<T>()))
    }

    fn take(view: ReadView<T, D>) -> Result<Self::Output, Error> {
        Ok(Snapshot::of(&view))
    }
}

impl<T: Clone + Send + 'static> Capture<Copies> for Taken<T> {
    type Output = T;
    type Access = Effect<T, Observe>;

    fn access(self) -> Result<Self::Access, Error> {
        Ok(Effect { object: self.object, _order: PhantomData })
    }

    fn weight(&self) -> Weight {
        Weight::Unknown
    }

    fn take(value: Unique<'_, T>) -> Result<T, Error> {
        value.clone().ok_or_else(|| value.moved_out())
    }
}

impl<T: Send + 'static> Capture<Moves> for Taken<T> {
    type Output = T;
    type Access = Effect<T, Sequential>;

    fn access(self) -> Result<Self::Access, Error> {
        Ok(Effect { object: self.object, _order: PhantomData })
    }

    fn weight(&self) -> Weight {
        Weight::Bytes(size_of::<T>())
    }

    fn check(value: &Unique<'_, T>) -> Result<(), Error> {
        if value.is_some() { Ok(()) } else { Err(value.moved_out()) }
    }

    fn take(mut value: Unique<'_, T>) -> Result<T, Error> {
        value.take().ok_or_else(|| value.moved_out())
    }
}

/// What can be captured at once: a [`Capture`] or a tuple of up to eight.
pub trait Captures<M>: 'static {
    /// The value, or the tuple of values.
    type Output: Send + 'static;
    /// How they are reached.
    #[doc(hidden)]
    type Accesses: AccessList<0>;

    /// The accesses.
    #[doc(hidden)]
    fn accesses(self) -> Result<Self::Accesses, Error>;

    /// How long taking them may take.
    #[doc(hidden)]
    fn weight(&self) -> Weight;

    /// Takes them, when their turn has come.
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

// Not for all modes at once: somebody could make tuples captures of a mode of their own.
one_capture!(Copies);
one_capture!(Moves);

macro_rules! captures {
    ($($capture:ident),*) => {
        captures!(Copies: $($capture),*);
        captures!(Moves: $($capture),*);
    };
    ($mode:ident: $($capture:ident),*) => {
        #[allow(non_snake_case, unused_variables, clippy::unused_unit)]
        impl<$($capture: Capture<$mode>),*> Captures<$mode> for ($($capture,)*) {
            type Output = ($($capture::Output,)*);
            type Accesses = ($($capture::Access,)*);

            fn accesses(self) -> Result<Self::Accesses, Error> {
                let ($($capture,)*) = self;
                Ok(($($capture.access()?,)*))
            }

            fn weight(&self) -> Weight {
                let ($($capture,)*) = self;
                Weight::Bytes(0)$(.plus($capture.weight()))*
            }

            fn take(guards: <Self::Accesses as AccessList<0>>::Guards<'_>) -> Result<Self::Output, Error> {
                let ($($capture,)*) = guards;
                $(check_one::<$mode, $capture>(&$capture)?;)*
                Ok(($(take_one::<$mode, $capture>($capture)?,)*))
            }
        }
    };
}

/// By its type: in the macro, variables and types share their names.
fn check_one<M, C: Capture<M>>(guard: &<C::Access as Access<0>>::Guard<'_>) -> Result<(), Error> {
    C::check(guard)
}

/// The same.
fn take_one<M, C: Capture<M>>(guard: <C::Access as Access<0>>::Guard<'_>) -> Result<C::Output, Error> {
    C::take(guard)
}

captures!();
captures!(C0);
captures!(C0, C1);
captures!(C0, C1, C2);
captures!(C0, C1, C2, C3);
captures!(C0, C1, C2, C3, C4);
captures!(C0, C1, C2, C3, C4, C5);
captures!(C0, C1, C2, C3, C4, C5, C6);
captures!(C0, C1, C2, C3, C4, C5, C6, C7);

/// What [`fence`](crate::Runtime::fence) takes: a buffer, a part of one, a host object whose type is `Clone`, each by
/// reference, or a tuple of such references.
pub trait Fenceable {
    /// The same as captures.
    type Captures: Captures<Copies>;

    /// As captures.
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
    type Captures = Taken<T>;

    fn captures(self) -> Taken<T> {
        self.capture()
    }
}

macro_rules! fenceable {
    ($($what:ident),*) => {
        #[allow(non_snake_case)]
        impl<$($what: Fenceable<Captures: Capture<Copies>>),*> Fenceable for ($($what,)*) {
            type Captures = ($($what::Captures,)*);

            fn captures(self) -> Self::Captures {
                let ($($what,)*) = self;
                ($($what.captures(),)*)
            }
        }
    };
}

fenceable!(F0);
fenceable!(F0, F1);
fenceable!(F0, F1, F2);
fenceable!(F0, F1, F2, F3);
fenceable!(F0, F1, F2, F3, F4);
fenceable!(F0, F1, F2, F3, F4, F5);
fenceable!(F0, F1, F2, F3, F4, F5, F6);
fenceable!(F0, F1, F2, F3, F4, F5, F6, F7);
