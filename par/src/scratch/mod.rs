//! Scratch memory: short-lived slices for the body of a region, at the cost of moving a pointer.
//!
//! Every thread has a [`Bump`], and [`scope`] opens a scope on it. Slices that are taken inside a scope are
//! given back when the scope ends, also by a panic. The borrow checker makes sure that they do not leave the
//! scope.
//!
//! ```
//! let total = anabranch_par::scratch::scope(|scope| {
//!     let a = scope.filled(1000, 1.5_f64);
//!     let b = scope.slice::<f64>(1000); // contents unspecified
//!     b.copy_from_slice(a);
//!     b.iter().sum::<f64>()
//! });
//! assert_eq!(total, 1500.0);
//! ```
//!
//! Returning a slice does not compile:
//!
//! ```compile_fail
//! let leaked = anabranch_par::scratch::scope(|scope| scope.filled(8, 0u8));
//! ```
//!
//! Nor does it compile to keep a slice in a value that lives longer, to pass a slice to an outer scope, or to
//! take a slice from an outer scope while an inner one is open, whose end would free it.
//!
//! For the other kinds of scratch see [the guide](crate::guide::scratch_storage).

pub(crate) mod bump;
mod pool;
pub(crate) mod provider;
mod worker_local;

pub use bump::{Bump, Scope};
pub use pool::{Pool, PoolGuard};
pub use worker_local::WorkerLocal;

use crate::foreign;

/// Opens a scope on the calling thread's scratch memory.
///
/// The memory stays with the thread, so the next scope of the same size allocates nothing. A nested call has
/// its own memory, and so has every participant of a parallel region. When a thread [ends or
/// leaves](crate::foreign), the next thread that needs scratch gets up to 1 MiB of its memory.
#[inline]
pub fn scope<R>(f: impl for<'s> FnOnce(&mut Scope<'s>) -> R) -> R {
    /// Puts the memory back, also if `f` panics.
    struct PutBack(Option<Box<Bump>>);
    impl Drop for PutBack {
        #[inline]
        fn drop(&mut self) {
            if let Some(bump) = self.0.take() {
                foreign::with(|kept| kept.scratch.push(bump));
            }
        }
    }
    PutBack(foreign::with(|kept| kept.scratch.pop())).0.get_or_insert_default().scope(f)
}
