//! Scratch memory: short-lived slices for the body of a region, at the cost of moving a pointer.
//!
//! Every thread has one [`Bump`]; [`scope`] opens a scope on it. What is taken inside a scope is given back when the
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

use std::cell::RefCell;

thread_local! {
    /// This thread's scratch, while no scope is open on it. A nested call of `scope` finds it gone and takes another;
    /// both are kept afterwards, so that the next nested call allocates nothing.
    static SCRATCH: RefCell<Vec<Bump>> = const { RefCell::new(Vec::new()) };
}

/// Opens a scope on the calling thread's scratch memory.
///
/// The memory stays with the thread, so that the next scope of the same size allocates nothing. In a parallel region
/// every participant uses its own.
pub fn scope<R>(f: impl for<'s> FnOnce(&mut Scope<'s>) -> R) -> R {
    /// Puts the memory back, also when `f` panics.
    struct Lent(Bump);
    impl Drop for Lent {
        fn drop(&mut self) {
            let bump = std::mem::take(&mut self.0);
            // At the end of the thread its store may be gone; then the memory is just freed.
            let _ = SCRATCH.try_with(|s| s.borrow_mut().push(bump));
        }
    }
    let bump = SCRATCH.try_with(|s| s.borrow_mut().pop()).ok().flatten().unwrap_or_default();
    Lent(bump).0.scope(f)
}
