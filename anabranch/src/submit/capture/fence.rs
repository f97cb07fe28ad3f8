//! Fences: the values of buffers and host objects at one point of the stream of tasks.
//!
//! A fence is a task. It reads buffers and *observes* host objects: it is ordered like a sequential effect,
//! but later tasks depend on its end only, so a `Clone` that panics fails the fence and poisons no object.
//! Small fences run on the thread that finds them ready, large ones on the pool, and fences that call a
//! `Clone` of the program on a lane. `drain` moves objects out instead, which is a sequential effect. The
//! cancellation of a group does not apply to fences, because a program looks through them at the results that
//! are left after a cancellation.

use super::{CaptureMode, Captures, Weight};
use crate::{
    error::{Cause, Error, Failure},
    events::event::Event,
    execute::{Body, Compute, Core, GroupHandle, Node, Place, Status},
    label::TaskLabel,
    submit::{
        access::list::AccessList,
        launch::{body::ONCE, declaration::Declaration, launch},
    },
};
use anabranch_graph::command::Work;
use anabranch_grid::{Chunk, GridBox};
use parking_lot::Mutex;
use std::{
    fmt,
    future::Future,
    panic::Location,
    pin::Pin,
    slice,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

/// A fence of up to this many bytes runs on the thread that finds it ready.
const INLINE_BYTES: usize = 64 << 10;

/// The result of a [`fence`](crate::Runtime::fence), when all earlier tasks that it depends on are done.
///
/// It is a `Future`, and a thread can [wait](Self::wait) for it. Dropping it discards the result.
#[must_use = "the contents are in here once they are ready: `wait` for them, or `await` them"]
pub struct Fence<R> {
    state: Arc<State<R>>,
    task: Node,
    core: Arc<Core>,
}

struct State<R> {
    event: Event,
    result: Mutex<Option<Result<R, Error>>>,
    /// Whether the result is, or was, an error.
    has_failed: AtomicBool,
}

impl<R> State<R> {
    fn take(&self) -> Result<R, Error> {
        let result = self.result.lock().take().expect("a fence gives its result once");
        if let Err(Error::Failed(failures)) = &result {
            failures.iter().for_each(Failure::mark_given);
        }
        result
    }

    /// The status of the fence whose task has this status.
    fn status_of(&self, task: Status) -> Status {
        match task {
            Status::Done if self.has_failed.load(Relaxed) => Status::Failed,
            status => status,
        }
    }

    fn put(&self, result: Result<R, Error>) {
        self.has_failed.store(result.is_err(), Relaxed);
        *self.result.lock() = Some(result);
        self.event.set();
    }
}

/// Makes sure that a fence gets a result, also if the copy panics (in a `Clone` of the program, for example).
struct Promise<R>(Option<Arc<State<R>>>);

impl<R> Promise<R> {
    fn fulfil(mut self, result: Result<R, Error>) {
        self.0.take().expect("a promise is fulfilled once").put(result);
    }
}

impl<R> Drop for Promise<R> {
    fn drop(&mut self) {
        if let Some(state) = self.0.take() {
            state.put(Err(Error::FenceLost));
        }
    }
}

impl<R> Fence<R> {
    /// Waits for the contents.
    ///
    /// The calling thread may run host tasks that it waits for on its own stack: see
    /// [`Runtime::wait`](crate::Runtime::wait).
    ///
    /// # Errors
    /// [`Error::Failed`] if a task whose results the fence needs has failed. [`Error::WaitInsideTask`].
    /// [`Error::FenceLost`] if a `Clone` panicked.
    pub fn wait(self) -> Result<R, Error> {
        const CALL: &str = "Fence::wait";
        self.core.check_outside(CALL)?;
        if !self.state.event.is_set() {
            self.core.wait_for_task(slice::from_ref(&self.task), &self.state.event, CALL);
        }
        self.state.take()
    }

    /// Whether the contents are ready.
    pub fn is_ready(&self) -> bool {
        self.state.event.is_set()
    }
}

impl<R: Send + 'static> Fence<R> {
    /// Calls `callback` once when the contents are ready, or will never be: see
    /// [`TaskHandle::on_done`](crate::TaskHandle::on_done).
    pub fn on_done(&self, callback: impl FnOnce(Status) + Send + 'static) {
        let state = Arc::clone(&self.state);
        self.task.on_done(move |status| callback(state.status_of(status)));
    }

    /// The task of the fence.
    pub(in crate::submit) fn task(&self) -> &Node {
        &self.task
    }

    /// Returns a function that gives the status of the fence when it is done.
    pub(in crate::submit) fn last_status(&self) -> impl FnOnce() -> Status + Send + use<R> {
        let (state, task) = (Arc::clone(&self.state), self.task.clone());
        move || state.status_of(task.status())
    }
}

impl<R> Future for Fence<R> {
    type Output = Result<R, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Err(error) = self.core.check_outside("Fence::poll") {
            return Poll::Ready(Err(error));
        }
        self.core.poll(&self.state.event, context).map(|()| self.state.take())
    }
}

impl<R> fmt::Debug for Fence<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence").field("ready", &self.state.event.is_set()).finish_non_exhaustive()
    }
}

/// Submits the task of a fence. `name` is for messages. `is_epoch` says whether the recorded graphs have an
/// epoch here, for a barrier or a drain.
pub(crate) fn submit<M: CaptureMode, C: Captures<M>>(
    core: &Arc<Core>,
    group: Option<&GroupHandle>,
    name: &'static str,
    is_epoch: bool,
    location: &'static Location<'static>,
    captures: C,
) -> Result<Fence<C::Output>, Error> {
    let place = match captures.weight() {
        Weight::Bytes(0..=INLINE_BYTES) => Place::Inline,
        Weight::Bytes(_) => Place::Compute,
        Weight::Unknown => Place::Host,
    };
    let label = TaskLabel { name: name.into(), location };
    let whole = Chunk::whole(GridBox::full([]));
    let mut declaration = Declaration::new(core, group, &label, whole, slice::from_ref(&whole));
    if let Some(record) = &mut declaration.record {
        record.work = if is_epoch { Work::Epoch } else { Work::Fence };
    }
    let bound = captures.accesses()?.declare(&mut declaration).map_err(|error| core.refuse(error))?;
    let state = Arc::new(State {
        event: Event::default(),
        result: Mutex::new(None),
        has_failed: AtomicBool::new(false),
    });
    let promise = Promise(Some(Arc::clone(&state)));
    let task =
        launch::<0, C::Accesses, _>(&mut declaration, bound, place, true, |bound| FenceBody::<M, C> {
            bound: Some(bound),
            promise: Some(promise),
        })?;
    Ok(Fence { state, task, core: Arc::clone(core) })
}

struct FenceBody<M: CaptureMode, C: Captures<M>> {
    bound: Option<Result<<C::Accesses as AccessList<0>>::Bound, Box<Error>>>,
    promise: Option<Promise<C::Output>>,
}

impl<M: CaptureMode, C: Captures<M>> Body for FenceBody<M, C> {
    fn run(&mut self, _: &Compute) -> Result<(), Cause> {
        let bound = self.bound.take().expect(ONCE);
        let promise = self.promise.take().expect(ONCE);
        promise.fulfil(bound.map_err(|error| *error).and_then(|bound| {
            // SAFETY: memory is attached; the executor calls this once, when the graph allows it.
            let guards = unsafe { C::Accesses::guards(&bound, 0) };
            C::take(guards)
        }));
        Ok(())
    }

    fn skip(&mut self, why: &Arc<Failure>) {
        self.bound = None;
        let promise = self.promise.take().expect(ONCE);
        promise.fulfil(Err(match &why.cause {
            Cause::Skipped { needs, .. } => needs.into(),
            _ => why.into(),
        }));
    }
}
