//! What tasks do: host functions and kernels, with their accesses bound.

use crate::{
    access::AccessList,
    core::Core,
    error::{Cause, Error, Failure, HostError},
    inside::Inside,
    node::Body,
    tile::Tile,
};
use anabranch_grid::Chunk;
use anabranch_par::{IntoParallel, LoopError, Schedule, Split, flush_denormals};
use smallvec::SmallVec;
use std::{convert::Infallible, sync::Arc};

/// A host function with its accesses bound (or why they are not), until it is run.
pub(crate) struct HostBody<const K: usize, L: AccessList<K>, F>(Option<Host<K, L, F>>);

struct Host<const K: usize, L: AccessList<K>, F> {
    whole: Chunk<K>,
    bound: Result<L::Bound, Box<Error>>,
    function: F,
}

impl<const K: usize, L: AccessList<K>, F> HostBody<K, L, F> {
    pub(crate) fn new(whole: Chunk<K>, bound: Result<L::Bound, Box<Error>>, function: F) -> Self {
        Self(Some(Host { whole, bound, function }))
    }
}

impl<const K: usize, L, F> Body for HostBody<K, L, F>
where
    L: AccessList<K>,
    F: for<'v> FnOnce(&Tile<K>, L::Views<'v>) -> Result<(), HostError> + Send + 'static,
{
    fn run(&mut self, _: &Core) -> Result<(), Cause> {
        let Host { whole, bound, function } = self.0.take().expect("a task is run once");
        let bound = bound.map_err(Cause::refused)?;
        // SAFETY: memory is attached, the executor calls this once, when the graph allows the task.
        let mut guards = unsafe { L::guards(&bound, 0) };
        function(&Tile::new(whole), L::views(&mut guards)).map_err(Cause::Error)
    }

    fn skip(&mut self, core: &Core, why: &Arc<Failure>) {
        core.skipped(why);
        self.0 = None;
    }
}

pub(crate) type Chunks<const K: usize> = SmallVec<[Chunk<K>; 1]>;

/// A kernel with its accesses bound, chunk by chunk.
pub(crate) struct Tiled<const K: usize, L: AccessList<K>, F> {
    pub(crate) bound: Result<L::Bound, Box<Error>>,
    pub(crate) chunks: Chunks<K>,
    pub(crate) kernel: F,
    pub(crate) flush: bool,
}

/// A kernel until it is run.
pub(crate) struct KernelBody<const K: usize, L: AccessList<K>, F>(Option<Tiled<K, L, F>>);

impl<const K: usize, L: AccessList<K>, F> KernelBody<K, L, F> {
    pub(crate) fn new(tiled: Tiled<K, L, F>) -> Self {
        Self(Some(tiled))
    }
}

impl<const K: usize, L, F> Body for KernelBody<K, L, F>
where
    L: AccessList<K>,
    F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
{
    fn run(&mut self, core: &Core) -> Result<(), Cause> {
        let Tiled { bound, chunks, kernel, flush } = self.0.take().expect("a task is run once");
        let bound = bound.map_err(Cause::refused)?;
        let order = core.seeded().map(|seeded| seeded.shuffle(chunks.len()));
        let call = |item: usize| {
            let chunk = order.as_ref().map_or(item, |order| order[item]);
            let _inside = Inside::enter(core);
            // SAFETY: memory is attached; each chunk is called once, when the graph allows the task.
            let mut guards = unsafe { L::guards(&bound, chunk) };
            kernel(&Tile::new(chunks[chunk]), L::views(&mut guards));
        };
        let chunks_done = (0..chunks.len())
            .par()
            .on(core.pool())
            .schedule(Schedule::Static(Split::Consecutive))
            .chunking(false)
            .threads(core.threads())
            .flush_denormals(flush)
            .try_for_each(|item| {
                call(item);
                Ok::<(), Infallible>(())
            });
        let done = chunks_done.map_err(|error| match error {
            LoopError::Panic(panic) => {
                let item = panic.index().expect("a panic of a loop has an item");
                let chunk = chunks[order.as_ref().map_or(item, |order| order[item])].range.to_string();
                Cause::from_panic(panic.into_payload(), Some(chunk))
            }
            other => unreachable!("nothing else ends this loop: {other}"),
        });
        done?;
        // SAFETY: memory is attached, all chunks are done, and the graph still allows the task.
        let finish = || unsafe { L::finish(&bound) };
        if flush {
            flush_denormals(finish)
        } else {
            finish()
        }
        Ok(())
    }

    fn skip(&mut self, core: &Core, why: &Arc<Failure>) {
        core.skipped(why);
        self.0 = None;
    }
}
