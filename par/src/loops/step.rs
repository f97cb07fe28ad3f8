//! Steps: the functions that a loop applies to each item. A step does nothing, copies, or calls closures one
//! after the other, with scratch or without.

use crate::scratch::provider::Provider;

/// A function of an item and of scratch that belongs to one participant.
///
/// The methods of [`Loop`](super::Loop) build it; programs call none of its methods.
pub trait Step<In>: Sync {
    /// The value that a participant keeps from item to item.
    #[doc(hidden)]
    type Scratch<'s>
    where
        Self: 's;
    /// The result for an item.
    type Out;

    /// Makes the scratch of a participant, before its first item.
    #[doc(hidden)]
    fn init_scratch(&self) -> Self::Scratch<'_>;

    /// The result for `item`.
    #[doc(hidden)]
    fn apply(&self, scratch: &mut Self::Scratch<'_>, item: In) -> Self::Out;

    /// Whether [`init_scratch`](Self::init_scratch) made this scratch, and did not find it in a
    /// `WorkerLocal`.
    #[doc(hidden)]
    fn is_fresh(&self, scratch: &Self::Scratch<'_>) -> bool;
}

/// Leaves items as they are.
#[derive(Clone, Copy, Debug)]
pub struct Identity;

impl<In> Step<In> for Identity {
    type Scratch<'s> = ();
    type Out = In;

    #[inline]
    fn init_scratch(&self) {}

    #[inline]
    fn apply(&self, (): &mut (), item: In) -> In {
        item
    }

    fn is_fresh(&self, (): &()) -> bool {
        false
    }
}

/// Calls a closure after another step.
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
    fn init_scratch(&self) -> Q::Scratch<'_> {
        self.step.init_scratch()
    }

    #[inline]
    fn apply(&self, scratch: &mut Q::Scratch<'_>, item: In) -> Out {
        (self.then)(self.step.apply(scratch, item))
    }

    fn is_fresh(&self, scratch: &Q::Scratch<'_>) -> bool {
        self.step.is_fresh(scratch)
    }
}

/// Copies the values that another step makes references to.
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
    fn init_scratch(&self) -> Q::Scratch<'_> {
        self.0.init_scratch()
    }

    #[inline]
    fn apply(&self, scratch: &mut Q::Scratch<'_>, item: In) -> T {
        *self.0.apply(scratch, item)
    }

    fn is_fresh(&self, scratch: &Q::Scratch<'_>) -> bool {
        self.0.is_fresh(scratch)
    }
}

/// Calls a closure with scratch.
#[derive(Clone, Copy, Debug)]
pub struct Scratched<P, F> {
    pub(super) provider: P,
    pub(super) then: F,
}

impl<In, P, F, Out> Step<In> for Scratched<P, F>
where
    P: Provider,
    F: Fn(&mut P::Value, In) -> Out + Sync,
{
    type Scratch<'s>
        = P::Lent<'s>
    where
        Self: 's;
    type Out = Out;

    #[inline]
    fn init_scratch(&self) -> P::Lent<'_> {
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
