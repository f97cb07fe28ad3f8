//! Loops whose results go through one closure, in the order of the items, while later items are still in work.
//!
//! Participants take runs in ascending order. Who begins with the run that is next takes the closure (the *sink*) with it,
//! and calls it with each result at once. Who is ahead leaves the results of a run on the *stage*; who has done the run
//! before them hands them on. So the closure is never called by two at a time, and nobody waits for it; except that who
//! is too far ahead waits, so that the stage stays small.

use super::{
    Loop, LoopError, Source, Step,
    drive::{At, Run},
};
use crate::{
    Panic, Schedule,
    current::{self, Held},
};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::{
    any::Any,
    collections::BTreeMap,
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

/// How many runs may be on the stage before those who are ahead wait.
const WINDOW: usize = 64;

/// For how many results of a run there is room from the beginning.
const ROOM: usize = 1024;

/// Results on their way to the closure.
pub(super) struct Stage<T, F> {
    state: Mutex<State<T, F>>,
    moved: Condvar,
    /// What whoever runs the loop held before.
    held: Held,
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
        Self { state: Mutex::new(state), moved: Condvar::new(), held: current::held() }
    }

    pub(super) fn interrupt(&self) {
        self.state.lock().interrupted = true;
        self.moved.notify_all();
    }

    /// The sink, for whoever begins with the run at item `start`, if that is next.
    fn sink_for(&self, start: usize) -> Option<F> {
        let mut state = self.state.lock();
        if state.next == start { state.sink.take() } else { None }
    }

    /// Gives the sink back after so many results; hands on what has come meanwhile.
    fn give_back<E>(&self, sink: F, count: usize) -> Result<(), At<Failed<E>>>
    where
        F: FnMut(T) -> Result<(), E>,
    {
        let mut state = self.state.lock();
        state.moved_on(sink, count);
        self.moved.notify_all();
        self.hand_on(state)
    }

    /// Leaves the results of the run that begins with item `start`, and hands on what can be.
    pub(super) fn put<E>(&self, start: usize, run: Vec<T>) -> Result<(), At<Failed<E>>>
    where
        F: FnMut(T) -> Result<(), E>,
    {
        let mut state = self.state.lock();
        // The run that is next never waits here, so there is always somebody who can go on. Unless that one waits for what this
        // participant has taken from a bounded pool, for its scratch: then this one may not wait.
        let waits = current::held() <= self.held;
        while waits && state.early.len() >= WINDOW && start != state.next && !state.interrupted {
            self.moved.wait(&mut state);
        }
        state.early.insert(start, run);
        self.hand_on(state)
    }

    /// Calls the sink, unless somebody else is at it, with all results that are next.
    fn hand_on<'s, E>(&'s self, mut state: MutexGuard<'s, State<T, F>>) -> Result<(), At<Failed<E>>>
    where
        F: FnMut(T) -> Result<(), E>,
    {
        while let Some((mut sink, run)) = state.take_next() {
            let (first, count) = (state.next, run.len());
            drop(state);
            feed(&mut sink, first, run)?;
            state = self.state.lock();
            state.moved_on(sink, count);
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
            LoopError::Panic(Panic::of_item(index, payload))
        }
        other => other.without_item(),
    }
}

impl<T, F> State<T, F> {
    /// The sink and the run that is next, if both are here.
    fn take_next(&mut self) -> Option<(F, Vec<T>)> {
        let sink = self.sink.take()?;
        match self.early.remove(&self.next) {
            Some(run) => Some((sink, run)),
            None => {
                self.sink = Some(sink);
                None
            }
        }
    }

    fn moved_on(&mut self, sink: F, count: usize) {
        self.next += count;
        self.sink = Some(sink);
    }
}

fn feed<T, E>(
    sink: &mut impl FnMut(T) -> Result<(), E>,
    first: usize,
    run: Vec<T>,
) -> Result<(), At<Failed<E>>> {
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
    /// is written to a file, say, or drawn. `sink` has its surroundings for itself, so it needs no lock. Who is too far
    /// ahead waits, so that few results are kept. Items are taken in ascending order: a static or guided
    /// [schedule](Schedule) becomes a [greedy](Schedule::Greedy) one.
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
        // And they must be short, because their results are kept.
        if self.settings.schedule != Schedule::Serial {
            self.settings.schedule = Schedule::Greedy;
        }
        let stage = Stage::new(sink);
        let body = |_, run: Run<'_, '_, S, Q>| {
            let items = run.items();
            if let Some(mut sink) = stage.sink_for(items.start) {
                run.try_each(|_, result| sink(result).map_err(Failed::Error))?;
                return stage.give_back(sink, items.len());
            }
            let mut results = Vec::with_capacity(items.len().min(ROOM));
            let made = catch_unwind(AssertUnwindSafe(|| run.each(|result| results.push(result))));
            // Those before an item that panicked are handed on as well.
            stage.put(items.start, results)?;
            made.or_else(|payload| resume_unwind(payload))
        };
        let split = self.settings.chunks(self.source.len());
        let done = self.drive_interruptibly(split, body, Some(&|| stage.interrupt()));
        done.map_err(failed)
    }
}
