//! Timelines: how far a device has come with its batches.
//!
//! A timeline is two numbers: how many batches were submitted, and how many of these are done. A program that
//! finds them equal knows that the device is idle, and calls no driver to find out.
//!
//! # Protocol
//! The two numbers are atomic. `submitted` changes without the lock. All else changes under the lock,
//! `completed` too, and is never called or woken there.
//!
//! 1. A device that takes a batch adds one to `submitted` ([`Timeline::begin`]). The sum is the value of the
//!    batch.
//! 2. A batch that fails leaves its error in `failures` ([`Timeline::fail`]). Then the device reports the
//!    batch as done, as for any batch.
//! 3. A thread that waits for a value looks at `completed`. If the value is not done, it takes the lock,
//!    looks again, and leaves an [`Event`] ([`Timeline::wait`], [`Timeline::done`]) or a callback
//!    ([`Timeline::on_complete`]) with the value.
//! 4. A thread that reports how far the device has come ([`Timeline::advance`]) takes the lock, raises
//!    `completed` and takes the events up to it. It leaves the lock and sets these events. A thread that
//!    comes later with a smaller value changes nothing.
//! 5. The same thread then calls the callbacks up to `completed`, unless `is_calling` says that a thread is
//!    doing so. That thread may be itself, in the middle of a callback. The thread that sets `is_calling`
//!    takes the first callback of the smallest value under the lock, and calls it without it. It goes on
//!    until none is left up to `completed`, which others may have raised meanwhile, and clears `is_calling`
//!    under the same lock. So callbacks are called in the order of their values, one at a time.
//! 6. A device that is lost raises `completed` to [`LOST`], which is larger than any value
//!    ([`Timeline::lose`]). Steps 4 and 5 then set all events and call all callbacks. From then on each value
//!    is done, also one that is submitted later. It has failed if it is larger than `completed` was before.
//!
//! | `submitted` | `completed` | state of the device |
//! |---|---|---|
//! | n | n | idle |
//! | n | below n | working on the batches from `completed + 1` to n |
//! | n | `LOST` | lost; there is an error for the batches that were not done, and for all later ones |
//!
//! | a value's | before it is done | when it is done | later |
//! |---|---|---|---|
//! | events | in `waiters` | taken by the thread that raises `completed` | never registered |
//! | callbacks | in `callbacks` | taken by the thread that has set `is_calling` | called by the thread that registers them |
//! | error | in `failures`, not reported | the same | reported when a waiter or a callback takes it; it stays, for others |

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(loom)))]
mod tests;

use super::DeviceError;
use crate::{
    events::{event::Event, patience_for_devices},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
    },
};
use anabranch_par::discard_payload;
use std::{
    cell::Cell,
    collections::{BTreeMap, VecDeque},
    fmt,
    future::Future,
    iter,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

/// What `completed` is when the device is lost.
const LOST: u64 = u64::MAX;

/// How long a thread that waits is parked before it polls the device again.
const POLL: Duration = Duration::from_millis(1);

/// A function that is called when a value is done. It takes the result by itself.
type Callback = Box<dyn FnOnce(&Timeline) + Send>;

/// How far a device has come. Batches are counted from 1. The timeline has the value n when the first n
/// batches are done.
///
/// A batch that has failed is done, too. Every thread, future and callback that waits for its value gets its
/// error, and no other one does. If none has taken the error, the next [`wait_for_all`](Self::wait_for_all)
/// returns it. The timeline keeps the errors of batches as long as it lives.
///
/// ```
/// use anabranch::device::Timeline;
/// use std::sync::{Arc, Mutex};
///
/// let timeline = Timeline::new("an example");
/// let (first, second) = (timeline.begin(), timeline.begin());
/// let order = Arc::new(Mutex::new(Vec::new()));
/// for value in [second, first] {
///     let order = Arc::clone(&order);
///     timeline.on_complete(value, move |result| {
///         assert!(result.is_ok());
///         order.lock().unwrap().push(value);
///     });
/// }
/// assert!(!timeline.is_idle());
/// timeline.advance(second);
/// assert!(timeline.is_idle());
/// assert_eq!(*order.lock().unwrap(), [first, second]);
/// ```
pub struct Timeline {
    device: String,
    submitted: AtomicU64,
    completed: AtomicU64,
    /// Whether there was any error. If there was none, a thread takes the result of a batch without the lock.
    has_failed: AtomicBool,
    state: Mutex<State>,
}

/// What the lock protects.
#[derive(Default)]
struct State {
    /// The events that wake the threads and futures that wait, with the values that they wait for.
    waiters: Vec<(u64, Arc<Event>)>,
    /// In the order of the values.
    callbacks: VecDeque<(u64, Callback)>,
    /// Whether a thread is calling callbacks.
    is_calling: bool,
    failures: BTreeMap<u64, Failed>,
    lost: Option<Loss>,
}

/// The error of one batch.
struct Failed {
    error: DeviceError,
    is_reported: bool,
}

/// The error of all batches after one.
struct Loss {
    /// The last batch that was done.
    after: u64,
    error: DeviceError,
    /// The last batch for which a waiter or callback has taken the error.
    reported: Option<u64>,
}

impl Timeline {
    /// A timeline on which nothing has been submitted. `device` is the name of the device, for messages.
    pub fn new(device: impl Into<String>) -> Self {
        Self {
            device: device.into(),
            submitted: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            state: Mutex::new(State::default()),
        }
    }

    /// Counts a batch as submitted. Returns its value. This is for devices.
    pub fn begin(&self) -> u64 {
        self.submitted.fetch_add(1, AcqRel) + 1
    }

    /// Reports that all batches up to `to` are done, unless the timeline is that far already. This is for
    /// devices. The calling thread wakes the threads and futures that wait for these values, and calls the
    /// callbacks. It must not hold a lock that a callback or a waker needs.
    ///
    /// # Panics
    /// If fewer batches were submitted.
    pub fn advance(&self, to: u64) {
        let submitted = self.submitted();
        assert!(to <= submitted, "the device {} cannot have done {to} batches of {submitted}", self.device);
        self.raise(to, |_, _| ());
    }

    /// Reports that a batch has failed. This is for devices. They call it before they
    /// [advance](Self::advance) to the batch, which only then counts as done. The first error of a batch
    /// stays.
    pub fn fail(&self, value: u64, error: DeviceError) {
        let mut state = self.state.lock();
        state.failures.entry(value).or_insert(Failed { error, is_reported: false });
        // Release, as the store to `completed` that follows: a thread that sees the batch done sees this.
        self.has_failed.store(true, Release);
    }

    /// Reports that the device is lost, and why: the batches in flight fail, and all later ones. This is for
    /// devices. It wakes threads and futures and calls callbacks as [`advance`](Self::advance) does. Only the
    /// first call has an effect.
    pub fn lose(&self, why: impl Into<String>) {
        let error = DeviceError::Lost { device: self.device.clone(), why: why.into() };
        self.raise(LOST, |state, completed| {
            state.lost = Some(Loss { after: completed, error, reported: None });
            self.has_failed.store(true, Release);
        });
    }

    /// How many batches were submitted.
    pub fn submitted(&self) -> u64 {
        self.submitted.load(Acquire)
    }

    /// How many batches are done. All of them are done if the device is lost.
    pub fn completed(&self) -> u64 {
        // In this order: no batch is done before it is submitted.
        let completed = self.completed.load(Acquire);
        self.submitted().min(completed)
    }

    /// Whether all batches are done. This costs two loads.
    pub fn is_idle(&self) -> bool {
        // In this order: both were equal when the second one was loaded.
        let completed = self.completed.load(Acquire);
        completed >= self.submitted()
    }

    /// Whether a batch is done, with or without an error. This costs one load.
    pub fn is_done(&self, value: u64) -> bool {
        self.completed.load(Acquire) >= value
    }

    /// The error with which the device was lost; `None` if it was not.
    pub fn is_lost(&self) -> Option<DeviceError> {
        if self.completed.load(Acquire) < LOST {
            return None;
        }
        self.state.lock().lost.as_ref().map(|loss| loss.error.clone())
    }

    /// Calls `f` once when a batch is done, with its error if it has failed: at once if it is done already,
    /// and otherwise on a thread that [advances](Self::advance) the timeline. Callbacks that wait are called
    /// one at a time, in the order of the values, and those of one value in the order of the calls of this
    /// function. The calling thread holds no lock of the timeline.
    ///
    /// The callback may use the timeline and submit to the device. It must not wait for a device, whose
    /// thread it may be called on: that is an error, unless the batch is done. It must not wait for anything
    /// else, and so submits no tasks to a runtime: a runtime with many tasks in flight makes a thread that
    /// submits wait. While it runs, the device may begin with no later batch, so it should be short. A panic
    /// on a thread that advances ends the callback and nothing else.
    pub fn on_complete(&self, value: u64, f: impl FnOnce(Result<(), DeviceError>) + Send + 'static) {
        self.call_when_done(value, move |timeline| in_callback(|| f(timeline.result(value))));
    }

    /// Calls `f` once when all batches are done that were submitted before this call, with the first error
    /// that no call has taken: [`wait_for_all`](Self::wait_for_all) as a callback. All else is as for
    /// [`on_complete`](Self::on_complete).
    pub fn on_idle(&self, f: impl FnOnce(Result<(), DeviceError>) + Send + 'static) {
        let last = self.submitted();
        self.call_when_done(last, move |timeline| in_callback(|| f(timeline.result_of_all(last))));
    }

    fn call_when_done(&self, value: u64, f: impl FnOnce(&Self) + Send + 'static) {
        if self.is_done(value) {
            return f(self);
        }
        let f: Callback = Box::new(f);
        let mut state = self.state.lock();
        if self.is_done(value) {
            drop(state);
            f(self);
        } else {
            state.add_callback(value, f);
        }
    }

    /// Blocks until a batch is done, and takes its error. The thread spins a little, then yields, then parks.
    /// It calls `poll` meanwhile, at least every millisecond: see [`Device::poll`](super::Device::poll).
    ///
    /// # Errors
    /// That of the batch, or [`DeviceError::Lost`]. [`DeviceError::WaitInsideCallback`] in a callback of a
    /// device, if the batch is not done.
    pub fn wait(&self, value: u64, poll: impl Fn()) -> Result<(), DeviceError> {
        self.block(value, poll)?;
        self.result(value)
    }

    /// Blocks until all batches are done that were submitted before this call, as [`wait`](Self::wait) does.
    ///
    /// # Errors
    /// The first error that no waiter, no callback and no earlier call of this has taken. Others come out at
    /// the next calls. [`DeviceError::WaitInsideCallback`] as in [`wait`](Self::wait).
    pub fn wait_for_all(&self, poll: impl Fn()) -> Result<(), DeviceError> {
        let last = self.submitted();
        self.block(last, poll)?;
        self.result_of_all(last)
    }

    /// Waits for all batches that were submitted before this call, as [`wait_for_all`](Self::wait_for_all)
    /// does, as a future. See [`done`](Self::done).
    pub fn idle(&self) -> impl Future<Output = Result<(), DeviceError>> + Send {
        Done { timeline: self, value: self.submitted(), takes_all: true, event: None }
    }

    /// Ends when a batch is done, and takes its error. Any executor can poll it. It does not
    /// [poll](super::Device::poll) the device. When it is dropped, its waker is forgotten.
    pub fn done(&self, value: u64) -> impl Future<Output = Result<(), DeviceError>> + Send {
        Done { timeline: self, value, takes_all: false, event: None }
    }

    fn block(&self, value: u64, poll: impl Fn()) -> Result<(), DeviceError> {
        if IN_CALLBACK.get() && !self.is_done(value) {
            return Err(DeviceError::WaitInsideCallback { device: self.device.clone() });
        }
        if let Some(event) = self.event(value) {
            let help = || {
                poll();
                false
            };
            event.wait(patience_for_devices(), help, POLL, &poll);
        }
        Ok(())
    }

    /// An event that is set when a batch is done; `None` if it is done.
    fn event(&self, value: u64) -> Option<Arc<Event>> {
        if self.is_done(value) {
            return None;
        }
        let event = Arc::new(Event::default());
        let mut state = self.state.lock();
        let is_done = self.is_done(value);
        (!is_done).then(|| {
            state.waiters.push((value, Arc::clone(&event)));
            event
        })
    }

    /// Takes the result of a batch that is done.
    fn result(&self, value: u64) -> Result<(), DeviceError> {
        // Acquire: see `fail`.
        if self.has_failed.load(Acquire) { self.state.lock().result(value) } else { Ok(()) }
    }

    /// Takes the first error of the batches up to `last` that no waiter and no callback has taken. These
    /// batches are done.
    fn result_of_all(&self, last: u64) -> Result<(), DeviceError> {
        // Acquire: as above.
        if self.has_failed.load(Acquire) { self.state.lock().unreported(last) } else { Ok(()) }
    }

    /// Raises `completed`, and calls `change` with its value before that, under the lock. Then wakes the
    /// threads and futures that wait, and calls the callbacks. Does nothing if the timeline is that far.
    fn raise(&self, to: u64, change: impl FnOnce(&mut State, u64)) {
        let mut state = self.state.lock();
        let completed = self.completed.load(Relaxed);
        if completed >= to {
            return;
        }
        change(&mut state, completed);
        self.completed.store(to, Release);
        let woken: Vec<_> = state.waiters.extract_if(.., |(value, _)| *value <= to).collect();
        drop(state);
        woken.into_iter().for_each(|(_, event)| event.set());
        self.call_callbacks();
    }

    /// Calls the callbacks of batches that are done, unless a thread does so.
    fn call_callbacks(&self) {
        let mut is_calling = false;
        let next = || {
            let mut state = self.state.lock();
            if state.is_calling && !is_calling {
                return None;
            }
            let due = state.due(self.completed.load(Relaxed));
            is_calling = due.is_some();
            state.is_calling = is_calling;
            due
        };
        for callback in iter::from_fn(next) {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| callback(self))) {
                discard_payload(payload);
            }
        }
    }
}

thread_local! {
    /// Whether this thread calls a callback of a device.
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// Calls a callback of a device.
fn in_callback(f: impl FnOnce()) {
    /// Restores what was so before.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IN_CALLBACK.set(self.0);
        }
    }
    let _before = Before(IN_CALLBACK.replace(true));
    f();
}

impl State {
    /// Adds a callback behind those of its value. Mostly it is that of the last value.
    fn add_callback(&mut self, value: u64, callback: Callback) {
        let before = self.callbacks.iter().rev().take_while(|(other, _)| *other > value).count();
        self.callbacks.insert(self.callbacks.len() - before, (value, callback));
    }

    /// Takes the first callback of the smallest value up to `completed`.
    fn due(&mut self, completed: u64) -> Option<Callback> {
        self.callbacks.pop_front_if(|(value, _)| *value <= completed).map(|(_, callback)| callback)
    }

    /// Takes the result of a batch.
    fn result(&mut self, value: u64) -> Result<(), DeviceError> {
        if let Some(failed) = self.failures.get_mut(&value) {
            failed.is_reported = true;
            return Err(failed.error.clone());
        }
        match &mut self.lost {
            Some(loss) if value > loss.after => {
                loss.reported = loss.reported.max(Some(value));
                Err(loss.error.clone())
            }
            _ => Ok(()),
        }
    }

    /// Takes the first error of the batches up to `last` that no waiter and no callback has taken.
    fn unreported(&mut self, last: u64) -> Result<(), DeviceError> {
        let mut failures = self.failures.range_mut(..=last).map(|(_, failed)| failed);
        if let Some(failed) = failures.find(|failed| !failed.is_reported) {
            failed.is_reported = true;
            return Err(failed.error.clone());
        }
        match &mut self.lost {
            Some(loss) if loss.reported.is_none_or(|reported| reported < last) => {
                loss.reported = Some(last);
                Err(loss.error.clone())
            }
            _ => Ok(()),
        }
    }
}

/// Callbacks are called once, also if the device ends and reports nothing.
impl Drop for Timeline {
    fn drop(&mut self) {
        self.lose("it has ended");
    }
}

impl fmt::Debug for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, .. } = self;
        let (completed, submitted) = (self.completed(), self.submitted());
        write!(f, "Timeline({device}: {completed} of {submitted} batches are done)")
    }
}

/// Ends when a batch is done, and all before it.
struct Done<'a> {
    timeline: &'a Timeline,
    value: u64,
    /// Whether it takes the first error of all batches up to the value, and not that of one batch.
    takes_all: bool,
    /// What the timeline has of this future.
    event: Option<Arc<Event>>,
}

impl Future for Done<'_> {
    type Output = Result<(), DeviceError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.event.is_none() {
            self.event = self.timeline.event(self.value);
        }
        match &self.event {
            Some(event) if event.poll(context).is_pending() => Poll::Pending,
            _ if self.takes_all => Poll::Ready(self.timeline.result_of_all(self.value)),
            _ => Poll::Ready(self.timeline.result(self.value)),
        }
    }
}

impl Drop for Done<'_> {
    fn drop(&mut self) {
        let Some(event) = self.event.take() else { return };
        let mut state = self.timeline.state.lock();
        let place = state.waiters.iter().position(|(_, waiter)| Arc::ptr_eq(waiter, &event));
        let waiter = place.map(|place| state.waiters.swap_remove(place));
        // The waker is the program's code: it is dropped after the lock.
        drop(state);
        drop(waiter);
    }
}
