//! Calls into the runtime from code that must not see a panic.

use crate::thread_pool::{ThreadPool, discard};
use std::{
    any::Any,
    fmt, mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

impl ThreadPool {
    /// Calls `f` with this pool as the calling thread's own, as [`install`](Self::install) does, and returns a panic as a
    /// value: for callbacks from another language, whose frames a panic must not cross.
    ///
    /// `f` runs on the calling thread, which may be any. The call takes no lock and allocates nothing. What `f` leaves behind when it
    /// panics is the caller's to judge, as with [`catch_unwind`].
    ///
    /// ```
    /// use anabranch_par::ThreadPool;
    ///
    /// let pool = ThreadPool::new(2)?;
    /// assert_eq!(pool.call(|| 6 * 7).unwrap(), 42);
    /// let panic = pool.call(|| panic!("no such file")).unwrap_err();
    /// assert_eq!(panic.message(), Some("no such file"));
    /// # Ok::<(), anabranch_par::PoolError>(())
    /// ```
    ///
    /// # Errors
    /// [`CallPanic`], if `f` panics.
    #[inline]
    pub fn call<R>(&self, f: impl FnOnce() -> R) -> Result<R, CallPanic> {
        catch_unwind(AssertUnwindSafe(|| self.install(f))).map_err(|payload| CallPanic { payload })
    }
}

/// A panic in a [call](ThreadPool::call), as a value.
///
/// Dropping it never panics, whatever the panic carried.
pub struct CallPanic {
    payload: Box<dyn Any + Send>,
}

impl CallPanic {
    /// The panic's message, if it has one.
    pub fn message(&self) -> Option<&str> {
        let payload = &*self.payload;
        payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
    }

    /// What the panic carried.
    pub fn into_payload(mut self) -> Box<dyn Any + Send> {
        self.take_payload()
    }

    /// Panics again, on this thread, with what the panic carried.
    pub fn resume(self) -> ! {
        resume_unwind(self.into_payload())
    }

    fn take_payload(&mut self) -> Box<dyn Any + Send> {
        mem::replace(&mut self.payload, Box::new(()))
    }
}

impl Drop for CallPanic {
    fn drop(&mut self) {
        discard(self.take_payload());
    }
}

impl fmt::Display for CallPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the call panicked: {}", self.message().unwrap_or("(no message)"))
    }
}

impl fmt::Debug for CallPanic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallPanic").field("message", &self.message()).finish()
    }
}

impl std::error::Error for CallPanic {}
