//! Prefix sums, with any associative operator.
//!
//! A scan has three steps: it scans each chunk by itself, then the last values of the chunks one after the
//! other, and then combines each chunk with the sum of those before it (G. E. Blelloch, [*Prefix sums and
//! their applications*](https://www.cs.cmu.edu/~guyb/papers/Ble93.pdf), CMU-CS-90-190, 1990).

use crate::{
    Consecutive,
    loops::{
        Loop,
        settings::Settings,
        source::{IntoParallel, SliceMut, Source},
        step::{Identity, Step},
    },
};

impl<'a, S: Source, Q: Step<S::Item>> Loop<'a, S, Q>
where
    Q::Out: Send + Sync,
{
    /// Combines, for each item, all items up to and including it with `op`, which must be associative. Floats
    /// have the same bits on any number of threads.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// assert_eq!((1..6).par().scan(|a, b| a + b), [1, 3, 6, 10, 15]);
    /// ```
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each). If `op` panics, the number in the message is that of a chunk.
    pub fn scan<F>(self, op: F) -> Vec<Q::Out>
    where
        F: Fn(&Q::Out, &Q::Out) -> Q::Out + Sync,
    {
        let (settings, split) = (self.settings.for_parts(), self.settings.leaves(self.len()));
        let mut values = self.collect();
        let mut parts = cut(&mut values, &split);
        over(&mut parts, settings).for_each(|part| {
            for i in 1..part.len() {
                part[i] = op(&part[i - 1], &part[i]);
            }
        });
        let Some((first, rest)) = parts.split_first_mut() else { return values };
        // The sums of all items before each part, from the third part on. Before the second part there is
        // only the first.
        let before_second = first.last().expect("no chunk is empty");
        let mut before: Vec<Q::Out> = Vec::with_capacity(rest.len());
        settings.in_denormal_mode(|| {
            for part in rest.iter() {
                let sum = op(before.last().unwrap_or(before_second), part.last().expect("no chunk is empty"));
                before.push(sum);
            }
        });
        over(rest, settings).enumerate().for_each(|(i, part)| {
            let before = i.checked_sub(1).map_or(before_second, |i| &before[i]);
            part.iter_mut().for_each(|value| *value = op(before, value));
        });
        values
    }

    /// Combines, for each item, `initial` and all items before it with `op`, which must be associative.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// assert_eq!((1..6).par().exclusive_scan(100, |a, b| a + b), [100, 101, 103, 106, 110]);
    /// ```
    ///
    /// # Panics
    /// As [`scan`](Self::scan).
    pub fn exclusive_scan<F>(self, initial: Q::Out, op: F) -> Vec<Q::Out>
    where
        Q::Out: Clone,
        F: Fn(&Q::Out, &Q::Out) -> Q::Out + Sync,
    {
        let settings = self.settings.for_parts();
        let sums = self.scan(&op);
        let source = (0..sums.len()).into_source();
        let shifted = |i: usize| i.checked_sub(1).map_or_else(|| initial.clone(), |i| op(&initial, &sums[i]));
        Loop { source, step: Identity, settings }.map(shifted).collect()
    }
}

/// Cuts `values` into the chunks of `split`.
fn cut<'v, T>(mut values: &'v mut [T], split: &Consecutive) -> Vec<&'v mut [T]> {
    let mut parts = Vec::with_capacity(split.chunks());
    for chunk in split.iter() {
        let (part, rest) = values.split_at_mut(chunk.len());
        parts.push(part);
        values = rest;
    }
    parts
}

/// A loop over the parts.
fn over<'a, 'p, 'v, T: Send>(
    parts: &'p mut [&'v mut [T]],
    settings: Settings<'a>,
) -> Loop<'a, SliceMut<'p, &'v mut [T]>> {
    Loop { source: SliceMut::new(parts), step: Identity, settings }
}
