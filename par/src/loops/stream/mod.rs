//! Parallel loops over iterators, of which nobody knows how long they are.
//!
//! Whoever is free takes the next few items from the iterator, under a lock, and then works on them without it
//! ([`drive`]). Items have the numbers in which the iterator gives them: everything else is as in a [`Loop`](super::Loop).
//! Results are in the order of the items, reductions have the shape of a tree that depends on the batch size alone
//! ([`reduce`]), and of several failures the one of the first item comes out.

mod drive;
mod ends;
mod reduce;

use super::{
    settings::Settings,
    step::{Copied, Identity, Scratched, Step, Then},
};
use crate::scratch::{
    WorkerLocal,
    worker_local::{Fresh, Kept, Provide},
};

/// Makes parallel loops of iterators.
pub trait IntoStream: Iterator + Send + Sized
where
    Self::Item: Send,
{
    /// A parallel loop over the items of this iterator. It is called by one thread at a time; what is expensive belongs into
    /// [`map`](Stream::map), behind it.
    ///
    /// Where there is a loop over numbers, slices or arrays, that is quicker: see
    /// [`IntoParallel`](crate::IntoParallel).
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let text = "one\ntwo\nthree";
    /// let lengths: Vec<usize> = text.lines().par_stream().map(str::len).collect();
    /// assert_eq!(lengths, [3, 3, 5]);
    /// // It may have no end.
    /// let square = (0_u64..).map(|i| i * i).par_stream().find(|i| *i > 1000);
    /// assert_eq!(square, Some(1024));
    /// ```
    fn par_stream<'a>(self) -> Stream<'a, Self> {
        Stream { items: self, step: Identity, settings: Settings::default() }
    }
}

impl<I: Iterator<Item: Send> + Send> IntoStream for I {}

/// A parallel loop over an iterator that has not been run yet: over the items of `I`, of which it makes `Q`.
///
/// It begins with [`par_stream`](IntoStream::par_stream) and does nothing until one of the methods is called that run it.
/// No more items are taken from the iterator after something has failed or was found. If the iterator itself panics, that
/// counts as a panic of the item that it should have given. It may run loops of its own.
///
/// ```
/// use anabranch_par::{LoopError, prelude::*};
///
/// let words = "3 4 five 6".split(' ');
/// let result = words.par_stream().map(|word| word.parse::<u32>()).try_collect();
/// assert_eq!(result.unwrap_err().to_string(), "item 2: invalid digit found in string");
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a loop does nothing until it is run"]
pub struct Stream<'a, I, Q = Identity> {
    items: I,
    step: Q,
    pub(super) settings: Settings<'a>,
}

impl<'a, I: Iterator> Stream<'a, I> {
    /// Gives each participant scratch of its own: see [`Loop::scratch`](crate::Loop::scratch).
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let lines = ["a b", "c", "d e f"].into_iter();
    /// let counts = lines.par_stream().scratch(Vec::new).map(|words, line| {
    ///     words.clear();
    ///     words.extend(line.split(' '));
    ///     words.len()
    /// });
    /// assert_eq!(counts.collect(), [2, 1, 3]);
    /// ```
    pub fn scratch<T, F: Fn() -> T + Sync>(self, init: F) -> ScratchStream<'a, I, Fresh<F>> {
        ScratchStream { inner: self, provider: Fresh(init) }
    }

    /// Scratch that stays in `local` from loop to loop: see [`WorkerLocal`].
    pub fn scratch_in<'w, T: Send, F: Fn() -> T + Sync>(
        self,
        local: &'w mut WorkerLocal<T>,
        init: F,
    ) -> ScratchStream<'a, I, Kept<'w, T, F>> {
        ScratchStream { inner: self, provider: Kept::new(local, init) }
    }
}

impl<'a, I: Iterator, Q: Step<I::Item>> Stream<'a, I, Q> {
    /// Makes of each item, or of what was made of it so far, what `f` makes of it.
    pub fn map<R, F: Fn(Q::Out) -> R + Sync>(self, f: F) -> Stream<'a, I, Then<Q, F>> {
        Stream { items: self.items, step: Then { step: self.step, then: f }, settings: self.settings }
    }
}

impl<'a, 't, I, Q, T> Stream<'a, I, Q>
where
    I: Iterator,
    Q: Step<I::Item, Out = &'t T>,
    T: Copy + 't,
{
    /// Copies of the items of a stream of references, as [`Iterator::copied`].
    pub fn copied(self) -> Stream<'a, I, Copied<Q>> {
        Stream { items: self.items, step: Copied(self.step), settings: self.settings }
    }
}

/// A [`Stream`] whose closure also gets scratch: see [`Stream::scratch`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a loop does nothing until it is run"]
pub struct ScratchStream<'a, I, P> {
    pub(super) inner: Stream<'a, I>,
    provider: P,
}

impl<'a, I: Iterator, P: Provide> ScratchStream<'a, I, P> {
    /// Makes of each item what `f` makes of it with the participant's scratch.
    pub fn map<R, F>(self, f: F) -> Stream<'a, I, Scratched<P, F>>
    where
        F: Fn(&mut P::Value, I::Item) -> R + Sync,
    {
        let Stream { items, settings, .. } = self.inner;
        Stream { items, step: Scratched { provider: self.provider, then: f }, settings }
    }
}
