//! The methods that make a loop of another one: pairs and numbers of its items, further steps, scratch.

use super::{
    Loop, Producer, ScratchLoop,
    source::{Enumerate, IntoParallel, Source, UnequalLengths, Zip},
    step::{Copied, Identity, Scratched, Step, Then},
};
use crate::scratch::{
    WorkerLocal,
    provider::{Fresh, Kept, Provider},
};

impl<'a, S: Source> Loop<'a, S> {
    /// Pairs each item with the item of `other` that has the same number.
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
    /// If the two have different numbers of items, or if both are boxes or arrays and have different shapes.
    pub fn zip<I: IntoParallel>(self, other: I) -> Result<Loop<'a, Zip<S, I::Source>>, UnequalLengths> {
        let source = Zip::new(self.source, other)?;
        Ok(Loop { source, step: Identity, settings: self.settings })
    }

    /// Pairs each item with its number.
    pub fn enumerate(self) -> Loop<'a, Enumerate<S>> {
        Loop { source: Enumerate(self.source), step: Identity, settings: self.settings }
    }
}

impl<'a, S: Producer> Loop<'a, S> {
    /// Gives each participant its own scratch. A participant calls `init` when it begins, so `init` is called
    /// at most once per thread, whatever the chunks are. After a panic a participant calls it again.
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

    /// Uses scratch that stays in `local` from loop to loop: see [`WorkerLocal`].
    pub fn scratch_in<'w, T: Send, I: Fn() -> T + Sync>(
        self,
        local: &'w mut WorkerLocal<T>,
        init: I,
    ) -> ScratchLoop<'a, S, Kept<'w, T, I>> {
        ScratchLoop { provider: Kept::new(local, init), inner: self }
    }
}

impl<'a, S: Producer, Q: Step<S::Item>> Loop<'a, S, Q> {
    /// Applies `f` to each item, or to the result that earlier steps made of it.
    pub fn map<R, F: Fn(Q::Out) -> R + Sync>(self, f: F) -> Loop<'a, S, Then<Q, F>> {
        Loop { source: self.source, step: Then { step: self.step, then: f }, settings: self.settings }
    }

    /// Copies the items of a loop over references, as [`Iterator::copied`] does.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let xs = [1.0, 3.0, 2.0];
    /// assert_eq!(xs.par().copied().reduce(f64::max), Some(3.0));
    /// ```
    pub fn copied<'t, T>(self) -> Loop<'a, S, Copied<Q>>
    where
        Q: Step<S::Item, Out = &'t T>,
        T: Copy + 't,
    {
        Loop { source: self.source, step: Copied(self.step), settings: self.settings }
    }
}

impl<'a, S: Producer, P: Provider> ScratchLoop<'a, S, P> {
    /// Applies `f` to the participant's scratch and each item.
    pub fn map<R, F>(self, f: F) -> Loop<'a, S, Scratched<P, F>>
    where
        F: Fn(&mut P::Value, S::Item) -> R + Sync,
    {
        let Loop { source, settings, .. } = self.inner;
        Loop { source, step: Scratched { provider: self.provider, then: f }, settings }
    }
}
