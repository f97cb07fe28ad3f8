//! A loop that has not run yet, and one with scratch.

use super::{settings::Settings, step::Identity};

/// A parallel loop that has not run yet: over the items of `S`, with the step `Q`.
///
/// [`par`](crate::IntoParallel::par) makes a loop over a [source](crate::Source), and
/// [`par_stream`](crate::IntoStream::par_stream) makes one over an iterator. A loop does nothing until one of
/// the methods that run it is called.
///
/// ```
/// use anabranch_par::prelude::*;
///
/// let xs: Vec<f64> = (0..1000).par().map(f64::from).collect();
/// let norm = xs.par().map(|x| x * x).sum().sqrt();
/// assert!((norm - 18243.7).abs() < 0.1);
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a loop does nothing until it is run"]
pub struct Loop<'a, S, Q = Identity> {
    pub(super) source: S,
    pub(super) step: Q,
    pub(super) settings: Settings<'a>,
}

impl<S> Loop<'_, S> {
    pub(crate) fn new(source: S) -> Self {
        Self { source, step: Identity, settings: Settings::default() }
    }
}

/// A [`Loop`] whose closure also gets scratch: see [`Loop::scratch`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a loop does nothing until it is run"]
pub struct ScratchLoop<'a, S, P> {
    pub(super) inner: Loop<'a, S>,
    pub(super) provider: P,
}
