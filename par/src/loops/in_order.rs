//! Loops whose results go through one closure, in the order of the items, while later items are still in work.
//!
//! Participants take runs in ascending order. Who has done a run leaves its results on the *stage*; if they are the next in
//! order, and nobody else is at it, it hands them on, and whatever follows that has come meanwhile. So the closure is never
//! called by two at a time, and nobody waits for it; except that who is too far ahead waits, so that the stage stays small.

use super::{Loop, LoopError, LoopPanic, Source, Step};
use crate::Schedule;
use parking_lot::{Condvar, Mutex};
use std::{
    any::Any,
    collections::BTreeMap,
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// How many runs may be on the stage before those who are ahead wait.
const WINDOW: usize = 64;

/// Results on their way to the closure.
pub(super) struct Stage<T, F> {
    state: Mutex<State<T, F>>,
    moved: Condvar,
}

struct State<T, F> {
    /// Runs that came early, by the number of their first item.
    early: BTreeMap<usize, Vec<T>>,
    /// The number of the item that is next.
    next: usize,
    /// Not here while somebody calls it; gone when it has failed.
    sink: Option<F>,
    /// Runs may be missing for ever: nobody is to wait for one.
    interrupted: bool,
}

pub(super) enum Failed<E> {
    Error(E),
    Panic(Box<dyn Any + Send>),
}

impl<T, F> Stage<T, F> {
    pub(super) fn new(sink: F) -> Self {
        let state = State { early: BTreeMap::new(), next: 0, sink: Some(sink), interrupted: false };
        Self { state: Mutex::new(state), moved: Condvar::new() }
    }

    pub(super) fn interrupt(&self) {
        self.state.lock().interrupted = true;
        self.moved.notify_all();
    }

    /// Leaves the results of the run that begins with item `start`, and hands on what can be.
    pub(super) fn put<E>(&self, start: usize, run: Vec<T>) -> Result<(), (usize, Failed<E>)>
    where
        F: FnMut(T) -> Result<(), E>,
    {
        let mut state = self.state.lock();
        // The run that is next never waits here, so there is always somebody who can go on.
        while state.early.len() >= WINDOW && start != state.next && !state.interrupted {
            self.moved.wait(&mut state);
        }
        state.early.insert(start, run);
        while let Some(run) = {
            let next = state.next;
            state.early.remove(&next)
        } {
            let Some(mut sink) = state.sink.take() else {
                // Somebody is at it, and will come to this run.
                let next = state.next;
                state.early.insert(next, run);
                return Ok(());
            };
            let first = state.next;
            drop(state);
            let count = run.len();
            hand_on(&mut sink, first, run)?;
            state = self.state.lock();
            state.next += count;
            state.sink = Some(sink);
            self.moved.notify_all();
        }
        Ok(())
    }
}

/// Takes the errors of the sink and its panics apart.
pub(super) fn failed<E>(error: LoopError<Failed<E>>) -> LoopError<E> {
    match error {
        LoopError::Item { index, error: Failed::Error(error) } => LoopError::Item { index, error },
        LoopError::Item { index, error: Failed::Panic(payload) } => {
            LoopError::Panic(LoopPanic::new(index, payload))
        }
        other => other.without_item(),
    }
}

fn hand_on<T, E>(
    sink: &mut impl FnMut(T) -> Result<(), E>,
    first: usize,
    run: Vec<T>,
) -> Result<(), (usize, Failed<E>)> {
    let mut item = first;
    let handed = catch_unwind(AssertUnwindSafe(|| {
        for value in run {
            sink(value)?;
            item += 1;
        }
        Ok(())
    }));
    match handed {
        Ok(done) => done.map_err(|error| (item, Failed::Error(error))),
        Err(payload) => Err((item, Failed::Panic(payload))),
    }
}

impl<S: Source, Q: Step<S::Item>> Loop<'_, S, Q>
where
    Q::Out: Send,
{
    /// Calls `sink` with all results in the order of the items, one at a time, while later ones are still being made: what
    /// is written to a file, say, or drawn. `sink` has its surroundings for itself, so it needs no lock.
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

    /// The same for a `sink` that can fail; it is not called again after an error.
    ///
    /// # Errors
    /// As [`try_for_each`](Self::try_for_each).
    pub fn try_in_order<E: Send, F>(mut self, sink: F) -> Result<(), LoopError<E>>
    where
        F: FnMut(Q::Out) -> Result<(), E> + Send,
    {
        // Runs must be taken in ascending order: who waits for an earlier one must be able to rely on somebody being at it.
        if matches!(self.settings.schedule, Schedule::Static(_) | Schedule::Guided) {
            self.settings.schedule = Schedule::Greedy;
        }
        let stage = Stage::new(sink);
        let body = |_, run: super::drive::Run<'_, '_, S, Q>| {
            let items = run.items();
            let mut results = Vec::with_capacity(items.len());
            run.each(|result| results.push(result));
            stage.put(items.start, results)
        };
        let split = self.settings.chunks(self.source.len());
        let done = self.drive_interruptibly(split, body, Some(&|| stage.interrupt()));
        done.map_err(failed)
    }
}
