//! What a loop makes of each item before its results go anywhere: nothing, a copy, a closure, one closure after another,
//! with scratch or without.

use super::{Loop, Source};
use crate::scratch::worker_local::Provide;

/// A function of an item, and of scratch that each participant has for itself.
///
/// The methods of [`Loop`](super::Loop) build it; there is nothing to call.
pub trait Step<In>: Sync {
    /// What a participant keeps from item to item.
    #[doc(hidden)]
    type Scratch<'s>
    where
        Self: 's;
    /// The result for an item.
    type Out;

    /// Called by each participant before its first item.
    #[doc(hidden)]
    fn begin(&self) -> Self::Scratch<'_>;

    /// The result for `item`.
    #[doc(hidden)]
    fn apply(&self, scratch: &mut Self::Scratch<'_>, item: In) -> Self::Out;

    /// Whether this scratch was made when the participant began.
    #[doc(hidden)]
    fn is_fresh(&self, scratch: &Self::Scratch<'_>) -> bool;
}

/// Items as they are.
#[derive(Clone, Copy, Debug)]
pub struct Identity;

impl<In> Step<In> for Identity {
    type Scratch<'s> = ();
    type Out = In;

    #[inline]
    fn begin(&self) {}

    #[inline]
    fn apply(&self, (): &mut (), item: In) -> In {
        item
    }

    fn is_fresh(&self, (): &()) -> bool {
        false
    }
}

/// A closure after another step.
#[derive(Clone, Copy, Debug)]
pub struct Then<Q, F> {
    pub(super) step: Q,
    pub(super) then: F,
}

impl<In, Q, F, Out> Step<In> for Then<Q, F>
where
    Q: Step<In>,
    F: Fn(Q::Out) -> Out + Sync,
{
    type Scratch<'s>
        = Q::Scratch<'s>
    where
        Self: 's;
    type Out = Out;

    #[inline]
    fn begin(&self) -> Q::Scratch<'_> {
        self.step.begin()
    }

    #[inline]
    fn apply(&self, scratch: &mut Q::Scratch<'_>, item: In) -> Out {
        (self.then)(self.step.apply(scratch, item))
    }

    fn is_fresh(&self, scratch: &Q::Scratch<'_>) -> bool {
        self.step.is_fresh(scratch)
    }
}

/// Copies of what another step makes references to.
#[derive(Clone, Copy, Debug)]
pub struct Copied<Q>(pub(super) Q);

impl<'t, In, Q, T> Step<In> for Copied<Q>
where
    Q: Step<In, Out = &'t T>,
    T: Copy + 't,
{
    type Scratch<'s>
        = Q::Scratch<'s>
    where
        Self: 's;
    type Out = T;

    #[inline]
    fn begin(&self) -> Q::Scratch<'_> {
        self.0.begin()
    }

    #[inline]
    fn apply(&self, scratch: &mut Q::Scratch<'_>, item: In) -> T {
        *self.0.apply(scratch, item)
    }

    fn is_fresh(&self, scratch: &Q::Scratch<'_>) -> bool {
        self.0.is_fresh(scratch)
    }
}

impl<'a, S, Q> Loop<'a, S, Q> {
    /// Copies of the items of a loop over references, as [`Iterator::copied`].
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let xs = [1.0, 3.0, 2.0];
    /// assert_eq!(xs.par().copied().reduce(f64::max), Some(3.0));
    /// ```
    pub fn copied<'t, T>(self) -> Loop<'a, S, Copied<Q>>
    where
        S: Source,
        Q: Step<S::Item, Out = &'t T>,
        T: Copy + 't,
    {
        Loop { source: self.source, step: Copied(self.step), settings: self.settings }
    }
}

/// A closure with scratch.
#[derive(Clone, Copy, Debug)]
pub struct Scratched<P, F> {
    pub(super) provider: P,
    pub(super) then: F,
}

impl<In, P, F, Out> Step<In> for Scratched<P, F>
where
    P: Provide,
    F: Fn(&mut P::Value, In) -> Out + Sync,
{
    type Scratch<'s>
        = P::Lent<'s>
    where
        Self: 's;
    type Out = Out;

    #[inline]
    fn begin(&self) -> P::Lent<'_> {
        self.provider.lend()
    }

    #[inline]
    fn apply(&self, lent: &mut P::Lent<'_>, item: In) -> Out {
        (self.then)(P::value(lent), item)
    }

    fn is_fresh(&self, lent: &P::Lent<'_>) -> bool {
        P::is_fresh(lent)
    }
}
