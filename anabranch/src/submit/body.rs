//! The bodies of tasks: host functions and kernels, with their bound accesses.

use super::{access_list::AccessList, host_result::HostError, tile::Tile};
use crate::{
    data::pattern::Pattern,
    error::{Cause, Error, Failure},
    execute::{Body, Compute},
};
use anabranch_grid::Chunk;
use anabranch_par::flush_denormals;
use smallvec::SmallVec;
use std::{convert::Infallible, sync::Arc};

/// Says that the executor runs or skips a task once.
pub(super) const ONCE: &str = "a task is run once";

/// Calls the function of a task for one chunk. With a pattern, checks that it writes what it declared, unless it fails.
///
/// # Safety
/// See [`AccessList::guards`].
#[inline]
unsafe fn call<const K: usize, L: AccessList<K>, E>(
    bound: &L::Bound,
    chunk: usize,
    pattern: Option<&Pattern>,
    function: impl for<'v> FnOnce(L::Views<'v>) -> Result<(), E>,
) -> Result<(), E> {
    if let Some(pattern) = pattern {
        // SAFETY: the caller promises it, and there is no guard yet.
        unsafe { L::prepare(bound, chunk, pattern) };
    }
    // SAFETY: the caller promises it.
    let mut guards = unsafe { L::guards(bound, chunk) };
    function(L::views(&mut guards))?;
    drop(guards);
    if let Some(pattern) = pattern {
        // SAFETY: the caller promises it, and there is no guard any more.
        unsafe { L::check(bound, chunk, pattern) };
    }
    Ok(())
}

/// A host function, until it is run.
pub(super) struct HostBody<const K: usize, L: AccessList<K>, F>(Option<Host<K, L, F>>);

struct Host<const K: usize, L: AccessList<K>, F> {
    whole: Chunk<K>,
    bound: Result<L::Bound, Box<Error>>,
    function: F,
}

impl<const K: usize, L: AccessList<K>, F> HostBody<K, L, F> {
    pub(super) fn new(whole: Chunk<K>, bound: Result<L::Bound, Box<Error>>, function: F) -> Self {
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
        let pattern = compute.is_checked().then(Pattern::draw);
        // SAFETY: memory is attached; the executor calls this once, when the graph allows the task.
        unsafe { call::<K, L, _>(&bound, 0, pattern.as_ref(), |views| function(&Tile::new(whole), views)) }
            .map_err(Cause::Error)
    }

    fn skip(&mut self, _: &Arc<Failure>) {
        self.0 = None;
    }
}

pub(super) type Chunks<const K: usize> = SmallVec<[Chunk<K>; 1]>;

/// A kernel with its bound accesses.
pub(super) struct Kernel<const K: usize, L: AccessList<K>, F> {
    pub(super) bound: Result<L::Bound, Box<Error>>,
    pub(super) chunks: Chunks<K>,
    pub(super) function: F,
    pub(super) flush_denormals: bool,
}

/// A kernel, until it is run.
pub(super) struct KernelBody<const K: usize, L: AccessList<K>, F>(Option<Kernel<K, L, F>>);

impl<const K: usize, L: AccessList<K>, F> KernelBody<K, L, F> {
    pub(super) fn new(kernel: Kernel<K, L, F>) -> Self {
        Self(Some(kernel))
    }
}

impl<const K: usize, L, F> Body for KernelBody<K, L, F>
where
    L: AccessList<K>,
    F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
{
    fn run(&mut self, compute: &Compute) -> Result<(), Cause> {
        let Kernel { bound, chunks, function, flush_denormals: flush } = self.0.take().expect(ONCE);
        let bound = bound?;
        let pattern = compute.is_checked().then(Pattern::draw);
        let done = compute.run_chunks(chunks.len(), flush, |chunk| {
            // SAFETY: memory is attached; each chunk is called once, when the graph allows the task.
            let Ok(()) = unsafe {
                call::<K, L, Infallible>(&bound, chunk, pattern.as_ref(), |views| {
                    function(&Tile::new(chunks[chunk]), views);
                    Ok(())
                })
            };
        });
        done.map_err(|panic| Cause::from_panic(panic.payload, Some(chunks[panic.chunk].range.to_string())))?;
        // SAFETY: memory is attached, all chunks are done, and the graph still allows the task.
        let finish = || unsafe { L::finish(&bound) };
        if flush {
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
