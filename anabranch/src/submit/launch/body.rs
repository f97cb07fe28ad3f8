//! The bodies of tasks: host functions and kernels, with their bound accesses.

use crate::{
    data::pattern::Pattern,
    error::{Cause, Error, Failure},
    execute::{Body, Compute, devices::LeavesOnHost},
    submit::{
        access::list::AccessList,
        recorded::access::RecordedAccessList,
        task::{host_result::HostError, tile::Tile},
    },
};
use anabranch_grid::{Chunk, GridBox};
use anabranch_par::flush_denormals;
use smallvec::SmallVec;
use std::{
    convert::Infallible,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// Says that the executor runs or skips a task once.
pub(in crate::submit) const ONCE: &str = "a task is run once";

/// Calls the function of a task for one chunk. With a pattern, checks that it writes what it declared, unless
/// it fails.
///
/// # Safety
/// See [`AccessList::guards`].
#[inline]
pub(in crate::submit) unsafe fn call<const K: usize, L: AccessList<K>, R, E>(
    bound: &L::Bound,
    chunk: usize,
    pattern: Option<&Pattern>,
    function: impl for<'v> FnOnce(L::Views<'v>) -> Result<R, E>,
) -> Result<R, E> {
    if let Some(pattern) = pattern {
        // SAFETY: the caller promises it, and there is no guard yet.
        unsafe { L::prepare(bound, chunk, pattern) };
    }
    // SAFETY: the caller promises it.
    let mut guards = unsafe { L::guards(bound, chunk) };
    let result = L::with_views(&mut guards, function)?;
    drop(guards);
    if let Some(pattern) = pattern {
        // SAFETY: the caller promises it, and there is no guard any more.
        unsafe { L::check(bound, chunk, pattern) };
    }
    Ok(result)
}

/// Calls a host function for one chunk, as [`call`] does. A panic is a cause, too. It names the chunk if
/// `name` is given.
///
/// # Safety
/// See [`AccessList::guards`].
pub(in crate::submit) unsafe fn call_host<const K: usize, L: AccessList<K>, R>(
    bound: &L::Bound,
    chunk: usize,
    pattern: Option<&Pattern>,
    name: Option<GridBox<K>>,
    function: impl for<'v> FnOnce(L::Views<'v>) -> Result<R, HostError>,
) -> Result<R, Cause> {
    // SAFETY: the caller promises it.
    let run = || unsafe { call::<K, L, _, _>(bound, chunk, pattern, function) };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(Cause::Error),
        Err(payload) => Err(Cause::from_panic(payload, name.map(|name| name.to_string()))),
    }
}

/// A host function, until it is run.
pub(in crate::submit) struct HostBody<const K: usize, L: AccessList<K>, F>(Option<Host<K, L, F>>);

struct Host<const K: usize, L: AccessList<K>, F> {
    whole: Chunk<K>,
    bound: Result<L::Bound, Box<Error>>,
    function: F,
}

impl<const K: usize, L: AccessList<K>, F> HostBody<K, L, F> {
    pub(in crate::submit) fn new(whole: Chunk<K>, bound: Result<L::Bound, Box<Error>>, function: F) -> Self {
        Self(Some(Host { whole, bound, function }))
    }
}

impl<const K: usize, L, F> Body for HostBody<K, L, F>
where
    L: AccessList<K>,
    F: for<'v> FnOnce(&Tile<K>, L::Views<'v>) -> Result<(), HostError> + Send + 'static,
{
    fn run(&mut self, compute: &Compute) -> Result<(), Cause> {
        let Host { whole, bound, function } = self.0.take().expect(ONCE);
        let bound = bound?;
        if whole.range.is_empty() {
            return Ok(());
        }
        let pattern = compute.is_checked().then(Pattern::draw);
        // SAFETY: memory is attached; the executor calls this once, when the graph allows the task.
        unsafe { call::<K, L, _, _>(&bound, 0, pattern.as_ref(), |views| function(&Tile::new(whole), views)) }
            .map_err(Cause::Error)
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.0 = None;
    }
}

pub(in crate::submit) type Chunks<const K: usize> = SmallVec<[Chunk<K>; 1]>;

/// A kernel with its bound accesses.
pub(in crate::submit) struct Kernel<const K: usize, L: AccessList<K>, F> {
    /// The error is boxed: it is rare, and large for a node that two threads touch.
    pub(in crate::submit) bound: Result<L::Bound, Box<Cause>>,
    pub(in crate::submit) chunks: Chunks<K>,
    pub(in crate::submit) function: F,
    pub(in crate::submit) flush_denormals: bool,
}

impl<const K: usize, L, F> Kernel<K, L, F>
where
    L: AccessList<K>,
    F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Sync,
{
    /// Calls the function for these chunks.
    ///
    /// # Safety
    /// Memory is attached. The graph allows these chunks, and they run only once.
    unsafe fn run(&self, bound: &L::Bound, chunks: Range<usize>, compute: &Compute) -> Result<(), Cause> {
        let pattern = compute.is_checked().then(Pattern::draw);
        let first = chunks.start;
        let done = compute.run_chunks(chunks.len(), self.flush_denormals, |chunk| {
            let chunk = first + chunk;
            // SAFETY: the caller promises it.
            let Ok(()) = unsafe {
                call::<K, L, _, Infallible>(bound, chunk, pattern.as_ref(), |views| {
                    (self.function)(&Tile::new(self.chunks[chunk]), views);
                    Ok(())
                })
            };
        });
        done.map_err(|panic| {
            let chunk = self.chunks[first + panic.chunk].range;
            Cause::from_panic(panic.payload, Some(chunk.to_string()))
        })
    }
}

/// A kernel, until it is run.
pub(in crate::submit) struct KernelBody<const K: usize, L: AccessList<K>, F>(Option<Kernel<K, L, F>>);

impl<const K: usize, L: AccessList<K>, F> KernelBody<K, L, F> {
    #[inline(always)]
    pub(in crate::submit) fn new(kernel: Kernel<K, L, F>) -> Self {
        Self(Some(kernel))
    }
}

impl<const K: usize, L, F> Body for KernelBody<K, L, F>
where
    L: AccessList<K>,
    F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
{
    fn run(&mut self, compute: &Compute) -> Result<(), Cause> {
        let kernel = self.0.take().expect(ONCE);
        let bound = kernel.bound.as_ref().map_err(|cause| Cause::clone(cause))?;
        // SAFETY: memory is attached if `bound` is not an error; the executor calls this once, when the graph
        // allows the task.
        unsafe { kernel.run(bound, 0..kernel.chunks.len(), compute) }?;
        // SAFETY: memory is attached, all chunks are done, and the graph still allows the task.
        let finish = || unsafe { L::finish(bound) };
        if kernel.flush_denormals {
            flush_denormals(finish)
        } else {
            finish()
        }
        Ok(())
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.0 = None;
    }
}

/// A piece of a kernel, until it is run. The pieces share the kernel. The last of them drops it.
pub(in crate::submit) struct PieceBody<const K: usize, L: AccessList<K>, F> {
    kernel: Option<Arc<Kernel<K, L, F>>>,
    chunks: Range<usize>,
}

impl<const K: usize, L: AccessList<K>, F> PieceBody<K, L, F> {
    pub(in crate::submit) fn new(kernel: Arc<Kernel<K, L, F>>, chunks: Range<usize>) -> Self {
        Self { kernel: Some(kernel), chunks }
    }
}

impl<const K: usize, L, F> Body for PieceBody<K, L, F>
where
    L: AccessList<K>,
    F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
{
    fn run(&mut self, compute: &Compute) -> Result<(), Cause> {
        let kernel = self.kernel.take().expect(ONCE);
        let bound = kernel.bound.as_ref().map_err(|cause| Cause::clone(cause))?;
        // SAFETY: memory is attached if `bound` is not an error; the executor calls this once, when the graph
        // allows this piece.
        unsafe { kernel.run(bound, self.chunks.clone(), compute) }
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.kernel = None;
    }
}

/// The reductions of a recorded kernel that a device computes on one of several nodes, with the bound
/// accesses. They have one chunk.
pub(in crate::submit) struct DeviceLeaves<const K: usize, L: RecordedAccessList<K>> {
    pub(in crate::submit) bound: Arc<L::Bound>,
    pub(in crate::submit) flush_denormals: bool,
}

impl<const K: usize, L: RecordedAccessList<K>> LeavesOnHost for DeviceLeaves<K, L> {
    fn results(&self, operand: usize) -> Option<[usize; 2]> {
        L::leaves(&self.bound, operand)
    }

    fn put(&self, operand: usize, results: &[u8]) {
        L::put_leaves(&self.bound, operand, results);
    }

    fn combine(&self) {
        // SAFETY: memory is attached; the launch calls this once, when the device has done it and before the
        // task ends, so the graph still allows the task. There is no guard: no thread runs the kernel.
        let finish = || unsafe { L::finish(&self.bound) };
        if self.flush_denormals { flush_denormals(finish) } else { finish() }
    }
}
