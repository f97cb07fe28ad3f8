//! Scratch memory: short-lived slices for the body of a region, at the cost of moving a pointer.
//!
//! Every thread has a [`Bump`]; [`scope`] opens a scope on it. What is taken inside a scope is given back when the
//! scope ends, also by a panic, and cannot leave it: the borrow checker sees to that.
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
//! Taken slices cannot escape. Returning one does not compile:
//!
//! ```compile_fail
//! let leaked = anabranch_par::scratch::scope(|scope| scope.filled(8, 0u8));
//! ```
//!
//! nor does keeping one in something that lives longer, handing one to an outer scope, or taking from an outer scope while
//! an inner one is open, whose end would free it.
//!
//! For the other kinds of scratch see [the guide](crate::guide::scratch_storage).

mod bump;
mod pool;
pub(crate) mod worker_local;

pub use bump::{Bump, Scope};
pub use pool::{Lent, Pool};
pub use worker_local::WorkerLocal;

use crate::foreign;

/// Opens a scope on the calling thread's scratch memory.
///
/// The memory stays with the thread, so that the next scope of the same size allocates nothing; a nested call has memory of
/// its own. In a parallel region every participant uses its own. When a thread [ends or leaves](crate::foreign), up
/// to 1 MiB is left to the next one that needs scratch.
#[inline]
pub fn scope<R>(f: impl for<'s> FnOnce(&mut Scope<'s>) -> R) -> R {
    /// Puts the memory back, also when `f` panics.
    struct Lent(Option<Box<Bump>>);
    impl Drop for Lent {
        #[inline]
        fn drop(&mut self) {
            if let Some(bump) = self.0.take() {
                foreign::with(|held| held.scratch.push(bump));
            }
        }
    }
    Lent(foreign::with(|held| held.scratch.pop())).0.get_or_insert_default().scope(f)
}
