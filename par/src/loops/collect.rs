//! Loops whose results are kept, in the order of the items.

use super::{Loop, LoopError, Source, Step, output::Output};
use std::convert::Infallible;

impl<S: Source, Q: Step<S::Item>> Loop<'_, S, Q>
where
    Q::Out: Send,
{
    /// The results, in the order of the items.
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each).
    pub fn collect(self) -> Vec<Q::Out> {
        let mut results = Vec::new();
        self.collect_into(&mut results);
        results
    }

    /// Appends the results to `results`, in the order of the items.
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each); then `results` is as it was.
    pub fn collect_into(self, results: &mut Vec<Q::Out>) {
        let len = self.len();
        let output = Output::behind(results, len);
        let done = self.drive::<Infallible, _>(|_, run| {
            // SAFETY: runs are disjoint.
            let mut writer = unsafe { output.writer(run.items()) };
            run.each(|value| writer.push(value));
            Ok(())
        });
        done.unwrap_or_else(|error| error.resume());
        output.finish();
        // SAFETY: all of them are written.
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
    /// If there are not as many elements as items; and as [`for_each`](Self::for_each): then some are overwritten.
    pub fn write_to(self, results: &mut [Q::Out]) {
        let (items, elements) = (self.len(), results.len());
        assert!(items == elements, "the results of {items} items cannot be written to {elements} elements");
        let target = super::source::SliceMut::new(results);
        let done = self.drive::<Infallible, _>(|_, run| {
            let mut cursor = target.cursor(run.items().start);
            // SAFETY: there are as many elements as items; runs are disjoint.
            run.each(|value| *unsafe { target.next(&mut cursor) } = value);
            Ok(())
        });
        done.unwrap_or_else(|error| error.resume());
    }
}

impl<S, Q, T, E> Loop<'_, S, Q>
where
    S: Source,
    Q: Step<S::Item, Out = Result<T, E>>,
    T: Send,
    E: Send,
{
    /// The results in the order of the items, if none is an error.
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
    pub fn try_collect(self) -> Result<Vec<T>, LoopError<E>> {
        let mut results = Vec::new();
        let len = self.len();
        let output = Output::behind(&mut results, len);
        self.drive(|_, run| {
            // SAFETY: runs are disjoint.
            let mut writer = unsafe { output.writer(run.items()) };
            run.try_each(|_, result| result.map(|value| writer.push(value)))
        })?;
        output.finish();
        // SAFETY: all of them are written.
        unsafe { results.set_len(len) };
        Ok(results)
    }
}
