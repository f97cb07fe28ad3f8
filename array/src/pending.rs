//! Results that the program gets when the operations that they depend on are done.

use crate::error::ArrayError;
use anabranch::{Element, Error, Fence, Snapshot};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// A result that is not there yet. It is a `Future`, and a thread can [`wait`](Self::wait) for it. Dropping
/// it discards the result.
///
/// ```
/// use anabranch::Runtime;
/// use anabranch_array::Arrays;
///
/// let arrays = Arrays::new(&Runtime::new()?);
/// let a = arrays.from_slice([4], &[3.0_f32, 1.0, 2.0, 1.0])?;
/// let least = a.find_min()?; // returns at once
/// assert_eq!(least.wait()?, Some(([1], 1.0)));
/// # Ok::<(), anabranch_array::ArrayError>(())
/// ```
#[must_use = "the result is in here once it is ready: `wait` for it, or `await` it"]
pub struct Pending<R> {
    later: Box<dyn Later<R>>,
}

/// A fence, and what makes the result of its elements.
trait Later<R>: Send {
    fn wait(self: Box<Self>) -> Result<R, Error>;
    fn is_ready(&self) -> bool;
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<R, Error>>;
}

struct Fenced<S, F> {
    fence: Fence<S>,
    finish: Option<F>,
}

const ONCE: &str = "a future gives its result once";

impl<S: Send, R, F: FnOnce(S) -> R + Send + Unpin> Later<R> for Fenced<S, F> {
    fn wait(self: Box<Self>) -> Result<R, Error> {
        let finish = self.finish.expect(ONCE);
        Ok(finish(self.fence.wait()?))
    }

    fn is_ready(&self) -> bool {
        self.fence.is_ready()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<R, Error>> {
        Pin::new(&mut self.fence).poll(context).map(|snapshot| {
            let finish = self.finish.take().expect(ONCE);
            Ok(finish(snapshot?))
        })
    }
}

impl<R> Pending<R> {
    /// The result that `finish` makes of the elements of a fence.
    pub(crate) fn new<T: Element>(
        fence: Fence<Snapshot<T, 1>>,
        finish: impl FnOnce(Vec<T>) -> R + Send + Unpin + 'static,
    ) -> Self {
        Self::of(fence, |snapshot: Snapshot<T, 1>| finish(snapshot.into_vec()))
    }

    /// The result that `finish` makes of the elements of two buffers.
    pub(crate) fn of_two<T: Element, U: Element>(
        fence: Fence<(Snapshot<T, 1>, Snapshot<U, 1>)>,
        finish: impl FnOnce(Vec<T>, Vec<U>) -> R + Send + Unpin + 'static,
    ) -> Self {
        Self::of(fence, |(a, b): (Snapshot<T, 1>, Snapshot<U, 1>)| finish(a.into_vec(), b.into_vec()))
    }

    fn of<S: Send + 'static>(fence: Fence<S>, finish: impl FnOnce(S) -> R + Send + Unpin + 'static) -> Self {
        Self { later: Box::new(Fenced { fence, finish: Some(finish) }) }
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// [`ArrayError::Runtime`] if an operation that it depends on has failed, or if this is called inside a
    /// task.
    pub fn wait(self) -> Result<R, ArrayError> {
        Ok(self.later.wait()?)
    }

    /// Whether the result is there.
    pub fn is_ready(&self) -> bool {
        self.later.is_ready()
    }
}

impl<R> Future for Pending<R> {
    type Output = Result<R, ArrayError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.later.poll(context).map_err(ArrayError::from)
    }
}

impl<R> fmt::Debug for Pending<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("ready", &self.is_ready()).finish_non_exhaustive()
    }
}
