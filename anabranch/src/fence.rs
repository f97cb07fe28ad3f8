//! Fences and captures: the contents of buffers and host objects, out of the stream of tasks.

use crate::{
    access::{Access, Read},
    buffer::{Buffer, Part},
    core::Core,
    declare::Declaration,
    element::{Element, Rank, Shape},
    error::{Error, TaskLabel},
    host_object::{HostObject, Taken},
    memory::Allocation,
    node::{Handle, Place, Work},
    sync::Event,
};
use anabranch_graph::Order;
use anabranch_grid::{Chunk, Extent, GridBox, fixed};
use ndarray::Array;
use parking_lot::Mutex;
use std::{
    fmt,
    future::Future,
    ops::Index,
    panic::Location,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// Fences of up to this many bytes are copied by whatever thread finds the contents ready.
const INLINE_BYTES: usize = 64 << 10;

/// The contents of a buffer, or of a box of it, at one point of the stream of tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot<T, const D: usize> {
    range: GridBox<D>,
    elements: Vec<T>,
}

impl<T: Element, const D: usize> Snapshot<T, D> {
    /// Which part of the buffer this is.
    pub fn range(&self) -> GridBox<D> {
        self.range
    }

    /// The number of elements along each dimension.
    pub fn extent(&self) -> Extent<D> {
        self.range.extent()
    }

    /// The elements in row-major order.
    pub fn as_slice(&self) -> &[T] {
        &self.elements
    }

    /// The elements in row-major order.
    pub fn into_vec(self) -> Vec<T> {
        self.elements
    }

    /// The elements as an `ndarray` array; its index `[0, …]` is the first point of [`range`](Self::range).
    pub fn into_array(self) -> Array<T, <Rank as Shape<D>>::Dim>
    where
        Rank: Shape<D>,
    {
        let shape = Rank::shape(self.range.extent().0);
        Array::from_shape_vec(shape, self.elements).expect("as many elements as the box has points")
    }
}

/// By the buffer's own coordinates.
impl<T, const D: usize> Index<[usize; D]> for Snapshot<T, D> {
    type Output = T;

    /// # Panics
    /// If the point is not in the snapshot.
    fn index(&self, point: [usize; D]) -> &T {
        assert!(self.range.contains_point(point), "{point:?} is not in the snapshot of {}", self.range);
        let extent = self.range.extent();
        let index = (0..D).fold(0, |index, d| index * extent[d] + point[d] - self.range.min()[d]);
        &self.elements[index]
    }
}

/// The result of a [`fence`](crate::Runtime::fence), once everything before it is done.
///
/// It is a `Future`, and it can be [waited](Self::wait) for. Dropping it forgets the result.
#[must_use = "the contents are in here once they are ready: `wait` for them, or `await` them"]
pub struct Fence<R> {
    state: Arc<State<R>>,
    task: Arc<Handle>,
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
        self.core.check_outside("Fence::wait")?;
        self.state.event.wait(|| self.task.help());
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

/// Submits the task of a fence whose work is made by `work`.
fn submit<R: Send + 'static>(
    core: &Arc<Core>,
    declaration: &Declaration<'_, 0>,
    place: Place,
    work: impl FnOnce(&mut dyn Iterator<Item = Arc<Allocation>>, Promise<R>) -> Work,
) -> Result<Fence<R>, Error> {
    let state = Arc::new(State { event: Event::default(), result: Mutex::new(None) });
    let promise = Promise(Some(Arc::clone(&state)));
    let node = core.submit(declaration, declaration.task.clone(), place, |memory| match memory {
        Ok(memory) => work(memory, promise),
        Err(error) => {
            promise.keep(Err(error.clone()));
            Work::failing(error)
        }
    })?;
    let task = Arc::new(Handle::default());
    task.set(node);
    Ok(Fence { state, task, core: Arc::clone(core) })
}

fn label(location: &'static Location<'static>) -> TaskLabel {
    TaskLabel { name: "fence".into(), location }
}

/// What can be fenced: a buffer, a part of one, a host object whose type is `Clone`.
pub trait Fenceable {
    /// What comes out.
    type Output: Send + 'static;

    /// Submits the fence.
    #[doc(hidden)]
    fn fence(
        &self,
        core: &Arc<Core>,
        location: &'static Location<'static>,
    ) -> Result<Fence<Self::Output>, Error>;
}

impl<T: Element, const D: usize> Fenceable for Part<T, D> {
    type Output = Snapshot<T, D>;

    fn fence(
        &self,
        core: &Arc<Core>,
        location: &'static Location<'static>,
    ) -> Result<Fence<Self::Output>, Error> {
        let Self { buffer, range } = self.clone();
        if !GridBox::full(buffer.extent()).contains(&range) {
            let (label, extent) = (buffer.inner.label(), buffer.extent().to_string());
            return Err(Error::NoSuchPart { buffer: label, extent, part: range.to_string() });
        }
        let label = label(location);
        let whole = Chunk::whole(GridBox::full([]));
        let mut declaration = Declaration::new(core, &label, whole, std::slice::from_ref(&whole));
        let mut bound = Read { buffer, mapper: fixed(range) }.declare(&mut declaration)?;
        let small = range.len().saturating_mul(size_of::<T>()) <= INLINE_BYTES;
        let place = if small { Place::Inline } else { Place::Compute };
        submit(core, &declaration, place, |memory, promise| {
            <Read<T, D, anabranch_grid::Fixed<D>> as Access<0>>::attach(&mut bound, memory);
            Work::Fence(Box::new(move |good| {
                promise.keep(match good {
                    Ok(()) => {
                        // SAFETY: memory is attached; the executor calls this once, when the graph allows it.
                        let view =
                            unsafe { <Read<T, D, anabranch_grid::Fixed<D>> as Access<0>>::guard(&bound, 0) };
                        Ok(Snapshot { range, elements: copy_box(&view, &range) })
                    }
                    Err(failure) => Err(failure.into()),
                });
            }))
        })
    }
}

impl<T: Element, const D: usize> Fenceable for Buffer<T, D> {
    type Output = Snapshot<T, D>;

    fn fence(
        &self,
        core: &Arc<Core>,
        location: &'static Location<'static>,
    ) -> Result<Fence<Self::Output>, Error> {
        self.capture().fence(core, location)
    }
}

/// The elements of a box, row by row.
fn copy_box<T: Element, const D: usize>(view: &crate::ReadView<T, D>, range: &GridBox<D>) -> Vec<T> {
    if let Some(elements) = view.as_slice() {
        return elements.to_vec();
    }
    let mut elements = Vec::with_capacity(range.len());
    if !range.is_empty() {
        let mut max = range.max().0;
        max[D - 1] = range.min()[D - 1] + 1;
        for first in GridBox::new(range.min(), max).points() {
            elements.extend_from_slice(view.run(first.0));
        }
    }
    elements
}

impl<T: Clone + Send + 'static> Fenceable for HostObject<T> {
    type Output = T;

    fn fence(&self, core: &Arc<Core>, location: &'static Location<'static>) -> Result<Fence<T>, Error> {
        // Cloning is the program's code, and may take its time.
        fence_object(self, core, location, Place::Host, |value| value.clone())
    }
}

/// A fence of a host object: `get` is called when it is the fence's turn.
fn fence_object<T: Send + 'static>(
    object: &HostObject<T>,
    core: &Arc<Core>,
    location: &'static Location<'static>,
    place: Place,
    get: impl FnOnce(&mut Option<T>) -> Option<T> + Send + 'static,
) -> Result<Fence<T>, Error> {
    let label = label(location);
    let whole = Chunk::whole(GridBox::full([]));
    let mut declaration = Declaration::new(core, &label, whole, std::slice::from_ref(&whole));
    declaration.object(object.inner.id, &object.inner.core, Order::Sequential, || object.inner.label())?;
    let object = object.clone();
    submit(core, &declaration, place, |_, promise| {
        Work::Fence(Box::new(move |good| {
            promise.keep(match good {
                Ok(()) => get(&mut object.inner.lock())
                    .ok_or_else(|| Error::MovedOut { what: object.inner.label() }),
                Err(failure) => Err(failure.into()),
            });
        }))
    })
}

/// What [`drain`](crate::Runtime::drain) hands back: captures of buffers and host objects, or a tuple of them.
pub trait Captures {
    /// Their values.
    type Output;
    /// What is under way meanwhile.
    #[doc(hidden)]
    type Pending;

    /// Submits what must be submitted.
    #[doc(hidden)]
    fn submit(self, core: &Arc<Core>, location: &'static Location<'static>) -> Result<Self::Pending, Error>;

    /// The values, after everything is done.
    #[doc(hidden)]
    fn finish(pending: Self::Pending) -> Result<Self::Output, Error>;
}

impl<T: Element, const D: usize> Captures for Part<T, D> {
    type Output = Snapshot<T, D>;
    type Pending = Fence<Snapshot<T, D>>;

    fn submit(self, core: &Arc<Core>, location: &'static Location<'static>) -> Result<Self::Pending, Error> {
        self.fence(core, location)
    }

    fn finish(pending: Self::Pending) -> Result<Self::Output, Error> {
        pending.wait()
    }
}

impl<T: Send + 'static> Captures for Taken<T> {
    type Output = T;
    type Pending = Fence<T>;

    fn submit(self, core: &Arc<Core>, location: &'static Location<'static>) -> Result<Self::Pending, Error> {
        fence_object(&self.object, core, location, Place::Inline, Option::take)
    }

    fn finish(pending: Self::Pending) -> Result<T, Error> {
        pending.wait()
    }
}

macro_rules! captures {
    ($($capture:ident),*) => {
        #[allow(non_snake_case, unused_variables, clippy::unused_unit)]
        impl<$($capture: Captures),*> Captures for ($($capture,)*) {
            type Output = ($($capture::Output,)*);
            type Pending = ($($capture::Pending,)*);

            fn submit(self, core: &Arc<Core>, location: &'static Location<'static>) -> Result<Self::Pending, Error> {
                let ($($capture,)*) = self;
                Ok(($($capture.submit(core, location)?,)*))
            }

            fn finish(pending: Self::Pending) -> Result<Self::Output, Error> {
                let ($($capture,)*) = pending;
                Ok(($(finish_one::<$capture>($capture)?,)*))
            }
        }
    };
}

fn finish_one<C: Captures>(pending: C::Pending) -> Result<C::Output, Error> {
    C::finish(pending)
}

captures!();
captures!(C0);
captures!(C0, C1);
captures!(C0, C1, C2);
captures!(C0, C1, C2, C3);
captures!(C0, C1, C2, C3, C4);
captures!(C0, C1, C2, C3, C4, C5);
captures!(C0, C1, C2, C3, C4, C5, C6);
captures!(C0, C1, C2, C3, C4, C5, C6, C7);
