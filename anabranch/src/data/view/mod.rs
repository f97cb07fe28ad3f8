//! Views: how a kernel or host function sees the regions that its task declared.
//!
//! Kernels touch the memory of buffers only through views. (The one exception is a reduction, which fills a
//! whole buffer when its kernel has ended.) Tasks share that memory and reach it through pointers. Five rules
//! make this sound:
//!
//! 1. A view gives access to the points of its *region* and to no others. It checks every access, in release
//!    builds too. For this the region has the shape that the type of the view says, which is that of the
//!    mapper. The runtime checks this when the task is submitted.
//! 2. Two regions of one task never overlap if the task writes one of them: neither the regions of two
//!    chunks, nor the regions of two accesses of one chunk. The runtime checks this when the task is
//!    submitted.
//! 3. Two tasks never run at the same time if their accesses overlap and one of them writes. The dependencies
//!    of the task graph keep them apart, and the counters of the executor order their memory accesses.
//! 4. The memory is initialised when it is allocated, and elements are plain data: every read gives a value.
//! 5. A view exists for one call of a kernel or host function, which gets a *reference* to it. The function
//!    can neither keep nor copy the view, nor swap a writing view for the view of another call. The view
//!    points to a bound access, which holds the allocation and lives longer.

mod raw;
mod read;
mod update;
mod write;

pub(crate) use self::raw::line_starts;
pub use self::{read::ReadView, update::UpdateView, write::WriteView};
