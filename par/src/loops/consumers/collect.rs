//! Loops that keep their results, in the order of the items.

use crate::loops::{
    Loop, LoopError, Producer,
    output::Output,
    producer::Batch,
    source::{SliceMut, Source},
    step::Step,
};
use std::convert::Infallible;

impl<S: Producer, Q: Step<S::Item>> Loop<'_, S, Q> {
    /// Collects the results, in the order of the items.
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each).
    pub fn collect(self) -> Vec<Q::Out>
    where
        Q::Out: Send,
    {
        S::collect(self)
    }

    /// Collects the results in the order of the items, if none is an error.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let numbers = ["1", "2", "3"].par().map(|word| word.parse::<i32>()).try_collect()?;
    /// assert_eq!(numbers, [1, 2, 3]);
    /// # Ok::<(), anabranch_par::LoopError<std::num::ParseIntError>>(())
    /// ```
    ///
    /// # Errors
    /// As [`try_for_each`](Self::try_for_each).
    pub fn try_collect<T, E>(self) -> Result<Vec<T>, LoopError<E>>
    where
        Q: Step<S::Item, Out = Result<T, E>>,
        T: Send,
        E: Send,
    {
        S::try_collect(self)
    }
}

impl<S: Source, Q: Step<S::Item>> Loop<'_, S, Q> {
    /// Appends the results to `results`, in the order of the items.
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each); then `results` is as it was.
    pub fn collect_into(self, results: &mut Vec<Q::Out>)
    where
        Q::Out: Send,
    {
        let len = self.len();
        let output = Output::behind(results, len);
        let done = self.run_chunks::<Infallible, _>(self.split(), None, |_, batch| {
            // SAFETY: batches are disjoint.
            let mut writer = unsafe { output.writer(batch.items()) };
            batch.for_each(|value| writer.push(value));
            Ok(())
        });
        done.unwrap_or_else(|error| error.resume());
        output.finish();
        // SAFETY: every result was written.
        unsafe { results.set_len(results.len() + len) };
    }

    /// Writes the results over the elements of `results`.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let mut squares = [0; 4];
    /// (0..4).par().map(|i| i * i).write_to(&mut squares);
    /// assert_eq!(squares, [0, 1, 4, 9]);
    /// ```
    ///
    /// # Panics
    /// If the numbers of elements and items differ; and as [`for_each`](Self::for_each): then some elements
    /// are overwritten.
    pub fn write_to(self, results: &mut [Q::Out])
    where
        Q::Out: Send,
    {
        let (items, elements) = (self.len(), results.len());
        assert!(items == elements, "the results of {items} items cannot be written to {elements} elements");
        let target = SliceMut::new(results);
        let done = self.run_chunks::<Infallible, _>(self.split(), None, |_, batch| {
            let mut cursor = target.cursor(batch.items().start);
            // SAFETY: there are as many elements as items, and batches are disjoint.
            batch.for_each(|value| *unsafe { target.next(&mut cursor) } = value);
            Ok(())
        });
        done.unwrap_or_else(|error| error.resume());
    }

    /// The results in the order of the items, if none is an error.
    pub(in crate::loops) fn try_collect_chunks<T, E>(self) -> Result<Vec<T>, LoopError<E>>
    where
        Q: Step<S::Item, Out = Result<T, E>>,
        T: Send,
        E: Send,
    {
        let mut results = Vec::new();
        let len = self.len();
        let output = Output::behind(&mut results, len);
        self.run_chunks(self.split(), None, |_, batch| {
            // SAFETY: batches are disjoint.
            let mut writer = unsafe { output.writer(batch.items()) };
            batch.try_for_each(|result| result.map(|value| writer.push(value)))
        })?;
        output.finish();
        // SAFETY: every result was written.
        unsafe { results.set_len(len) };
        Ok(results)
    }
}
