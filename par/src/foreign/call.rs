//! Calls into the runtime from code that must not see a panic.

use crate::{Panic, ThreadPool};
use std::panic::{AssertUnwindSafe, catch_unwind};

impl ThreadPool {
    /// Calls `f` with this pool as the calling thread's own, as [`install`](Self::install) does, and returns
    /// a panic as a value: for callbacks from another language, whose frames a panic must not cross.
    ///
    /// `f` runs on the calling thread, which may be any thread. The call takes no lock and allocates nothing.
    /// As with [`catch_unwind`], the caller must judge whether the data that `f` changed is still consistent
    /// after a panic.
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
    /// [`Panic`], if `f` panics.
    #[inline]
    pub fn call<R>(&self, f: impl FnOnce() -> R) -> Result<R, Panic> {
        catch_unwind(AssertUnwindSafe(|| self.install(f))).map_err(Panic::of_call)
    }
}
