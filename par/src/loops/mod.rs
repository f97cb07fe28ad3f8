//! Data-parallel loops.
//!
//! A [`Loop`] has a *source* of items ([`source`]), a *step* that makes something of each ([`step`]), settings, and at its
//! end a method that runs it and says where the results go: [`for_each`](Loop::for_each), [`collect`](Loop::collect),
//! [`reduce`](Loop::reduce), [`sum`](Loop::sum), [`find`](Loop::find), [`scan`](Loop::scan), [`in_order`](Loop::in_order).
//! All of them go through one driver ([`drive`]), which opens a region and hands runs of items to its participants.
//!
//! A [`Stream`] is the same for an iterator, of which nobody knows how long it is ([`stream`]).
//!
//! - Results are the same on any number of threads and under every schedule, bit for bit.
//! - When a loop returns, everything that it began has ended. Of several errors or panics the one of the first item comes out.
//! - A thread that waits in a loop runs nothing else.

mod collect;
mod drive;
mod each;
mod error;
mod find;
mod in_order;
mod numbers;
mod output;
mod reduce;
mod scan;
mod settings;
pub mod source;
pub(crate) mod step;
mod stream;
mod watch;

pub use error::LoopError;
pub use numbers::Number;
pub use stream::{IntoStream, ScratchStream, Stream};
pub use watch::{ParticipantStatistics, Progress, Statistics};

use crate::scratch::{
    WorkerLocal,
    worker_local::{Fresh, Kept, Provide},
};
use settings::Settings;
use source::{Enumerate, IntoParallel, Source, UnequalLengths, Zip};
use step::{Identity, Scratched, Step, Then};

/// A parallel loop that has not been run yet: over the items of `S`, of which it makes `Q`.
///
/// It begins with [`par`](IntoParallel::par) and does nothing until one of the methods is called that run it.
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
    source: S,
    step: Q,
    settings: Settings<'a>,
}

impl<S: Source> Loop<'_, S> {
    pub(crate) fn new(source: S) -> Self {
        Self { source, step: Identity, settings: Settings::default() }
    }
}

impl<'a, S: Source> Loop<'a, S> {
    /// Pairs each item with the one of `other` that has the same number.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let (a, mut b) = ([1, 2, 3], [10, 20, 30]);
    /// b.par_mut().zip(&a)?.for_each(|(b, a)| *b += a);
    /// assert_eq!(b, [11, 22, 33]);
    /// let error = a.par().zip(&b[1..]).unwrap_err();
    /// assert_eq!((error.left, error.right), (3, 2));
    /// # Ok::<(), anabranch_par::UnequalLengths>(())
    /// ```
    ///
    /// # Errors
    /// Where there are not as many; or where both are boxes or arrays, of different shapes.
    pub fn zip<I: IntoParallel>(self, other: I) -> Result<Loop<'a, Zip<S, I::Source>>, UnequalLengths> {
        let source = Zip::new(self.source, other)?;
        Ok(Loop { source, step: Identity, settings: self.settings })
    }

    /// Pairs each item with its number.
    pub fn enumerate(self) -> Loop<'a, Enumerate<S>> {
        Loop { source: Enumerate(self.source), step: Identity, settings: self.settings }
    }

    /// Gives each participant scratch of its own: `init` is called by each of them when it begins, so never more often than
    /// there are threads, whatever the chunks; after a panic a participant calls it again.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let digits: Vec<usize> = (0..1000)
    ///     .par()
    ///     .scratch(String::new)
    ///     .map(|text, i| {
    ///         text.clear();
    ///         text.push_str(&i.to_string());
    ///         text.len()
    ///     })
    ///     .collect();
    /// assert_eq!(digits[100], 3);
    /// ```
    pub fn scratch<T, I: Fn() -> T + Sync>(self, init: I) -> ScratchLoop<'a, S, Fresh<I>> {
        ScratchLoop { provider: Fresh(init), inner: self }
    }

    /// Scratch that stays in `local` from loop to loop: see [`WorkerLocal`].
    pub fn scratch_in<'w, T: Send, I: Fn() -> T + Sync>(
        self,
        local: &'w mut WorkerLocal<T>,
        init: I,
    ) -> ScratchLoop<'a, S, Kept<'w, T, I>> {
        ScratchLoop { provider: Kept::new(local, init), inner: self }
    }
}

impl<'a, S: Source, Q: Step<S::Item>> Loop<'a, S, Q> {
    /// Makes of each item, or of what was made of it so far, what `f` makes of it.
    pub fn map<R, F: Fn(Q::Out) -> R + Sync>(self, f: F) -> Loop<'a, S, Then<Q, F>> {
        Loop { source: self.source, step: Then { step: self.step, then: f }, settings: self.settings }
    }
}

/// A [`Loop`] whose closure also gets scratch: see [`Loop::scratch`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a loop does nothing until it is run"]
pub struct ScratchLoop<'a, S, P> {
    inner: Loop<'a, S>,
    provider: P,
}

impl<'a, S: Source, P: Provide> ScratchLoop<'a, S, P> {
    /// Makes of each item what `f` makes of it with the participant's scratch.
    pub fn map<R, F>(self, f: F) -> Loop<'a, S, Scratched<P, F>>
    where
        F: Fn(&mut P::Value, S::Item) -> R + Sync,
    {
        let Loop { source, settings, .. } = self.inner;
        Loop { source, step: Scratched { provider: self.provider, then: f }, settings }
    }
}
