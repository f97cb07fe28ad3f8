//! Loops that pass their results to one closure (the *sink*), in the order of the items, while later items
//! are in work.
//!
//! 1. Participants claim batches in ascending order.
//! 2. A participant that begins with the batch that is next takes the sink out of the [`ReorderBuffer`] and
//!    calls it with each result at once.
//! 3. A participant that is ahead collects the results of its batch and inserts them into the buffer.
//! 4. The participant that gives the sink back drains the buffer: it calls the sink with the batches that are
//!    next, as long as there are any.
//!
//! So two threads never call the sink at the same time, and no thread waits for it. A participant waits only
//! if the buffer is full, so that few results are in memory.

use crate::{
    Panic, Schedule,
    context::{HeldValues, held_values},
    loops::{
        Loop, LoopError, Producer,
        error::AtItem,
        producer::{Batch, Consumer},
        step::Step,
    },
};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    any::Any,
    collections::BTreeMap,
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

/// How many batches the buffer holds before participants that are ahead wait.
const MAX_BUFFERED: usize = 64;

/// The most results of a batch that memory is reserved for at first.
const RESERVED: usize = 1024;

impl<S: Producer, Q: Step<S::Item>> Loop<'_, S, Q>
where
    Q::Out: Send,
{
    /// Calls `sink` with all results in the order of the items, one at a time, while later ones are still
    /// being made: to write them to a file, say, or to draw them. No two threads call `sink` at the same
    /// time, so it needs no lock. A participant that is too far ahead waits, so that few results are kept.
    /// Items are claimed in ascending order: a static or guided [schedule](Schedule) becomes a
    /// [greedy](Schedule::Greedy) one.
    ///
    /// ```
    /// use anabranch_par::prelude::*;
    ///
    /// let mut text = String::new();
    /// (0..5).par().map(|i| i * i).in_order(|square| text += &format!("{square} "));
    /// assert_eq!(text, "0 1 4 9 16 ");
    /// ```
    ///
    /// # Panics
    /// As [`for_each`](Self::for_each). A panic of `sink` counts as one of the item that it was called with.
    pub fn in_order<F: FnMut(Q::Out) + Send>(self, mut sink: F) {
        let result = self.try_in_order(|item| {
            sink(item);
            Ok::<_, Infallible>(())
        });
        result.unwrap_or_else(|error| error.resume());
    }

    /// Like [`in_order`](Self::in_order), for a `sink` that can fail. It is not called again after an error.
    ///
    /// # Errors
    /// As [`try_for_each`](Self::try_for_each).
    pub fn try_in_order<E: Send, F>(mut self, sink: F) -> Result<(), LoopError<E>>
    where
        F: FnMut(Q::Out) -> Result<(), E> + Send,
    {
        // Batches are claimed in ascending order, so whenever a participant waits for an earlier batch,
        // another one is working on it. They are short, because their results are kept.
        if self.settings.schedule != Schedule::Serial {
            self.settings.schedule = Schedule::Greedy;
        }
        let buffer = ReorderBuffer::new(sink);
        S::run(self, &buffer, Some(&|| buffer.interrupt())).map_err(|error| match error {
            LoopError::Item { index, error: SinkFailure::Error(error) } => LoopError::Item { index, error },
            LoopError::Item { index, error: SinkFailure::Panic(payload) } => {
                LoopError::Panic(Panic::of_item(index, payload))
            }
            other => other.without_item(),
        })
    }
}

/// Results that the sink has not got yet.
struct ReorderBuffer<T, F> {
    state: Mutex<State<T, F>>,
    /// Notified when the sink has been called with a batch, and when the loop is interrupted.
    progressed: Condvar,
    /// The values of bounded pools that the caller of the loop held before.
    held: HeldValues,
}

struct State<T, F> {
    /// The batches that arrived early, by the number of their first item.
    early: BTreeMap<usize, Vec<T>>,
    /// The number of the next item for the sink.
    next: usize,
    /// `None` while a participant calls it, and for good once it has failed.
    sink: Option<F>,
    /// Batches may be missing for good, so no participant may wait for one.
    interrupted: bool,
}

enum SinkFailure<E> {
    Error(E),
    Panic(Box<dyn Any + Send>),
}

impl<T, E, F> Consumer<T> for ReorderBuffer<T, F>
where
    T: Send,
    E: Send,
    F: FnMut(T) -> Result<(), E> + Send,
{
    type Error = SinkFailure<E>;

    fn consume(&self, batch: impl Batch<Out = T>) -> Result<(), AtItem<SinkFailure<E>>> {
        let items = batch.items();
        if let Some(mut sink) = self.take_sink(items.start) {
            batch.try_for_each(|result| sink(result).map_err(SinkFailure::Error))?;
            return self.give_back(sink, items.len());
        }
        let mut results = Vec::with_capacity(items.len().min(RESERVED));
        let made = catch_unwind(AssertUnwindSafe(|| batch.for_each(|result| results.push(result))));
        // If an item panicked, the sink still gets the results before it.
        self.insert(items.start, results)?;
        made.or_else(|payload| resume_unwind(payload))
    }
}

impl<T, F> ReorderBuffer<T, F> {
    fn new(sink: F) -> Self {
        let state = State { early: BTreeMap::new(), next: 0, sink: Some(sink), interrupted: false };
        Self { state: Mutex::new(state), progressed: Condvar::new(), held: held_values() }
    }

    fn interrupt(&self) {
        self.state.lock().interrupted = true;
        self.progressed.notify_all();
    }

    /// Takes the sink out, if the batch that begins with item `start` is next.
    fn take_sink(&self, start: usize) -> Option<F> {
        let mut state = self.state.lock();
        if state.next == start { state.sink.take() } else { None }
    }

    /// Gives the sink back after `count` results, and drains the buffer.
    fn give_back<E>(&self, sink: F, count: usize) -> Result<(), AtItem<SinkFailure<E>>>
    where
        F: FnMut(T) -> Result<(), E>,
    {
        let mut state = self.state.lock();
        state.advance(sink, count);
        self.progressed.notify_all();
        self.drain(state)
    }

    /// Inserts the results of the batch that begins with item `start`, and drains the buffer. Waits while the
    /// buffer is full.
    fn insert<E>(&self, start: usize, results: Vec<T>) -> Result<(), AtItem<SinkFailure<E>>>
    where
        F: FnMut(T) -> Result<(), E>,
    {
        let mut state = self.state.lock();
        // The batch that is next never waits here, so one participant can always go on. The exception: that
        // participant may wait for a value of a bounded pool that this one has taken for its scratch. So a
        // participant that holds more than the caller held does not wait.
        let may_wait = held_values() <= self.held;
        while may_wait && state.early.len() >= MAX_BUFFERED && start != state.next && !state.interrupted {
            self.progressed.wait(&mut state);
        }
        state.early.insert(start, results);
        self.drain(state)
    }

    /// Calls the sink with all results that are next, unless another thread is calling it.
    fn drain<'s, E>(&'s self, mut state: MutexGuard<'s, State<T, F>>) -> Result<(), AtItem<SinkFailure<E>>>
    where
        F: FnMut(T) -> Result<(), E>,
    {
        while let Some((mut sink, results)) = state.take_next() {
            let (first, count) = (state.next, results.len());
            drop(state);
            feed(&mut sink, first, results)?;
            state = self.state.lock();
            state.advance(sink, count);
            self.progressed.notify_all();
        }
        Ok(())
    }
}

impl<T, F> State<T, F> {
    /// Takes the sink and the batch that is next, if both are here.
    fn take_next(&mut self) -> Option<(F, Vec<T>)> {
        let sink = self.sink.take()?;
        match self.early.remove(&self.next) {
            Some(results) => Some((sink, results)),
            None => {
                self.sink = Some(sink);
                None
            }
        }
    }

    fn advance(&mut self, sink: F, count: usize) {
        self.next += count;
        self.sink = Some(sink);
    }
}

/// Calls the sink with the results of a batch that begins with item `first`.
fn feed<T, E>(
    sink: &mut impl FnMut(T) -> Result<(), E>,
    first: usize,
    results: Vec<T>,
) -> Result<(), AtItem<SinkFailure<E>>> {
    let mut item = first;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        for value in results {
            sink(value)?;
            item += 1;
        }
        Ok(())
    }));
    match outcome {
        Ok(result) => result.map_err(|error| (item, SinkFailure::Error(error))),
        Err(payload) => Err((item, SinkFailure::Panic(payload))),
    }
}
