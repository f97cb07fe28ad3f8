//! Fences: what buffers and host objects hold, out of the stream of tasks.

use crate::{
    access::AccessList,
    capture::Captures,
    core::Core,
    declare::Declaration,
    error::{Cause, Error, Failure, TaskLabel},
    node::{Body, Node, Place},
    sync::Event,
};
use anabranch_graph::command::Work;
use anabranch_grid::{Chunk, GridBox};
use parking_lot::Mutex;
use std::{
    fmt,
    future::Future,
    panic::Location,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// Fences of up to this many bytes are copied by whatever thread finds the contents ready.
const INLINE_BYTES: usize = 64 << 10;

/// The result of a [`fence`](crate::Runtime::fence), once everything before it is done.
///
/// It is a `Future`, and it can be [waited](Self::wait) for. Dropping it forgets the result.
#[must_use = "the contents are in here once they are ready: `wait` for them, or `await` them"]
pub struct Fence<R> {
    state: Arc<State<R>>,
    task: Node,
    core: Arc<Core>,
}

struct State<R> {
    event: Event,
    result: Mutex<Option<Result<R, Error>>>,
}

impl<R> State<R> {
    fn take(&self) -> Result<R, Error> {
        let result = self.result.lock().take();
        result.expect("a fence gives its result once")
    }

    fn put(&self, result: Result<R, Error>) {
        *self.result.lock() = Some(result);
        self.event.set();
    }
}

/// Sees to it that the fence ends, also where the copy panics (a `Clone` of the program's, say).
struct Promise<R>(Option<Arc<State<R>>>);

impl<R> Promise<R> {
    fn keep(mut self, result: Result<R, Error>) {
        self.0.take().expect("kept once").put(result);
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
    /// # Errors
    /// Where a task that was to produce them has failed; where it is called inside a task of the same runtime.
    pub fn wait(self) -> Result<R, Error> {
        // Also where the contents are ready: whether this is an error must not depend on the schedule.
        self.core.check_outside("Fence::wait")?;
        if !self.state.event.is_set() {
            self.state.event.wait(
                || self.core.help_one(&self.task),
                self.core.watch_interval(),
                || self.core.watch(),
            );
        }
        self.state.take()
    }

    /// Whether the contents are ready.
    pub fn is_ready(&self) -> bool {
        self.state.event.is_set()
    }
}

impl<R> Future for Fence<R> {
    type Output = Result<R, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.core.drive(&self.state.event);
        match self.state.event.poll(context) {
            Poll::Ready(()) => Poll::Ready(self.state.take()),
            Poll::Pending => self
                .core
                .check_outside("Fence::poll")
                .map_or_else(|e| Poll::Ready(Err(e)), |()| Poll::Pending),
        }
    }
}

impl<R> fmt::Debug for Fence<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fence").field("ready", &self.state.event.is_set()).finish_non_exhaustive()
    }
}

/// Submits the task of a fence, called `name` in messages. `epoch`: as the captures of one, for the record.
pub(crate) fn submit<M: 'static, C: Captures<M>>(
    core: &Arc<Core>,
    name: &'static str,
    epoch: bool,
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
    let mut declaration = Declaration::new(core, &label, whole, std::slice::from_ref(&whole));
    if let Some(told) = &mut declaration.told {
        told.work = if epoch { Work::Epoch } else { Work::Fence };
    }
    let bound = captures.accesses()?.declare(&mut declaration)?;
    let state = Arc::new(State { event: Event::default(), result: Mutex::new(None) });
    let promise = Promise(Some(Arc::clone(&state)));
    let task = core.submit::<0, C::Accesses, _>(&declaration, bound, place, |bound| FenceBody::<M, C> {
        bound: Some(bound),
        promise: Some(promise),
    })?;
    Ok(Fence { state, task, core: Arc::clone(core) })
}

/// How long taking a capture may take.
#[derive(Clone, Copy, Debug)]
pub enum Weight {
    /// As long as copying so many bytes.
    Bytes(usize),
    /// It is the program's code that copies.
    Unknown,
}

impl Weight {
    pub(crate) fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Bytes(a), Self::Bytes(b)) => Self::Bytes(a.saturating_add(b)),
            _ => Self::Unknown,
        }
    }
}

struct FenceBody<M, C: Captures<M>> {
    bound: Option<Result<<C::Accesses as AccessList<0>>::Bound, Box<Error>>>,
    promise: Option<Promise<C::Output>>,
}

impl<M: 'static, C: Captures<M>> Body for FenceBody<M, C>
where
    C: 'static,
{
    const UNDER_TOKENS: bool = false;

    fn run(&mut self, _: &Core) -> Result<(), Cause> {
        let bound = self.bound.take().expect("a task is run once");
        let promise = self.promise.take().expect("a task is run once");
        promise.keep(bound.map_err(|error| *error).and_then(|bound| {
            // SAFETY: memory is attached; the executor calls this once, when the graph allows it.
            let guards = unsafe { C::Accesses::guards(&bound, 0) };
            C::take(guards)
        }));
        Ok(())
    }

    fn skip(&mut self, _: &Core, why: &Arc<Failure>) {
        self.bound = None;
        let promise = self.promise.take().expect("a task is run once");
        promise.keep(Err(match &why.cause {
            Cause::Skipped { needs, .. } => needs.into(),
            _ => why.into(),
        }));
    }
}
