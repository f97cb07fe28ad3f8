//! Loops over [sources](super::source), whose items have a known number and can be reached one by one.
//!
//! The items are cut into chunks by the [settings](super::settings), and participants claim chunks from the
//! counters of a region ([`job`]). A claimed range of items is a [`SourceBatch`](batch::SourceBatch).

mod batch;
mod fold;
mod job;
mod numbers;

use super::{
    Loop, LoopError, Number, Producer, control::hooks::OnInterrupt, number::NumberRef, producer::Consumer,
    source::Source, step::Step,
};

impl<S: Source> Producer for S {
    type Item = S::Item;

    #[inline]
    fn run<Q, R, C>(
        work: Loop<'_, S, Q>,
        consumer: &C,
        on_interrupt: OnInterrupt<'_>,
    ) -> Result<(), LoopError<C::Error>>
    where
        Q: Step<S::Item, Out = R>,
        C: Consumer<R>,
    {
        work.run_chunks(work.split(), on_interrupt, |_, batch| consumer.consume(batch))
    }

    fn collect<Q, R>(work: Loop<'_, S, Q>) -> Vec<R>
    where
        Q: Step<S::Item, Out = R>,
        R: Send,
    {
        let mut results = Vec::new();
        work.collect_into(&mut results);
        results
    }

    fn try_collect<Q, T, E>(work: Loop<'_, S, Q>) -> Result<Vec<T>, LoopError<E>>
    where
        Q: Step<S::Item, Out = Result<T, E>>,
        T: Send,
        E: Send,
    {
        work.try_collect_chunks()
    }

    fn try_fold<Q, R, A, E, I, F, C>(
        work: Loop<'_, S, Q>,
        identity: I,
        fold: F,
        combine: C,
    ) -> Result<A, LoopError<E>>
    where
        Q: Step<S::Item, Out = R>,
        A: Send,
        E: Send,
        I: Fn() -> A + Sync,
        F: Fn(A, R) -> Result<A, E> + Sync,
        C: Fn(A, A) -> A + Sync,
    {
        if work.settings.unordered {
            work.fold_unordered(identity, fold, combine)
        } else {
            work.fold_in_tree(identity, fold, combine)
        }
    }

    fn fold_numbers<Q, R, N, F>(work: Loop<'_, S, Q>, identity: N, op: F) -> Option<N>
    where
        Q: Step<S::Item, Out = R>,
        R: NumberRef<Number = N>,
        N: Number,
        F: Fn(N, N) -> N + Copy + Sync,
    {
        work.fold_lanes(identity, op)
    }
}
