//! A recorded task without its types: what a replay calls for each of its units.

use crate::{
    data::pattern::Pattern,
    error::{Cause, Error},
    label::TaskLabel,
    submit::{
        access::list::AccessList,
        launch::body::{self, Chunks},
        task::{host_result::HostError, tile::Tile},
    },
};
use anabranch_graph::Access;
use anabranch_par::flush_denormals;
use std::{
    convert::Infallible,
    ops::{ControlFlow, Range},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// A recorded task with its bound accesses.
pub(super) trait Units: Send + Sync {
    /// Attaches the memory of these versions of the buffers, in the order of the accesses.
    fn attach(&mut self, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error>;

    /// Calls the function for chunks, one after the other, until a call fails. It may end the replays with
    /// this one.
    ///
    /// # Safety
    /// Memory is attached. The graph allows these chunks now, in this replay, and each runs once.
    unsafe fn call(
        &self,
        chunks: Range<usize>,
        replay: u64,
        is_checked: bool,
    ) -> Result<ControlFlow<()>, Cause>;

    /// Ends the reductions of the task.
    ///
    /// # Safety
    /// Memory is attached. All chunks have run in this replay, and the graph allows this now.
    unsafe fn end(&self) -> Result<(), Cause>;
}

/// A recorded task, as its sequence keeps it.
pub(super) struct Recorded {
    pub(super) label: TaskLabel,
    /// All accesses to buffers, in the order of their declaration.
    pub(super) accesses: Vec<Access>,
    pub(super) units: Box<dyn Units>,
}

/// A kernel.
pub(super) struct KernelUnits<const K: usize, L: AccessList<K>, F> {
    pub(super) bound: L::Bound,
    pub(super) chunks: Chunks<K>,
    pub(super) function: Arc<F>,
    pub(super) flush_denormals: bool,
}

impl<const K: usize, L, F> Units for KernelUnits<K, L, F>
where
    L: AccessList<K>,
    F: for<'v> Fn(&Tile<K>, L::Views<'v>) + Send + Sync + 'static,
{
    fn attach(&mut self, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
        L::attach(&mut self.bound, versions)
    }

    unsafe fn call(
        &self,
        chunks: Range<usize>,
        replay: u64,
        is_checked: bool,
    ) -> Result<ControlFlow<()>, Cause> {
        let mut current = chunks.start;
        let call = || {
            for chunk in chunks {
                current = chunk;
                let tile = Tile::new(self.chunks[chunk]).in_replay(replay);
                let pattern = is_checked.then(Pattern::draw);
                // SAFETY: the caller promises it.
                let Ok(()) = unsafe {
                    body::call::<K, L, _, Infallible>(&self.bound, chunk, pattern.as_ref(), |views| {
                        (self.function)(&tile, views);
                        Ok(())
                    })
                };
            }
        };
        catch_unwind(AssertUnwindSafe(|| with_mode(self.flush_denormals, call)))
            .map(ControlFlow::Continue)
            .map_err(|payload| Cause::from_panic(payload, Some(self.chunks[current].range.to_string())))
    }

    unsafe fn end(&self) -> Result<(), Cause> {
        // SAFETY: the caller promises it.
        let end = || unsafe { L::finish(&self.bound) };
        catch_unwind(AssertUnwindSafe(|| with_mode(self.flush_denormals, end)))
            .map_err(|payload| Cause::from_panic(payload, None))
    }
}

fn with_mode<R>(flush: bool, call: impl FnOnce() -> R) -> R {
    if flush { flush_denormals(call) } else { call() }
}

/// A host task.
pub(super) struct HostUnits<const K: usize, L: AccessList<K>, F> {
    pub(super) bound: L::Bound,
    pub(super) calls: Calls<K, F>,
}

/// The calls of a host task in each replay.
pub(super) struct Calls<const K: usize, F> {
    /// The function is called once for each of them. If there are none, the task has a unit that calls
    /// nothing.
    pub(super) chunks: Chunks<K>,
    /// Whether the chunks are the points of a batch. Then a panic names its point.
    pub(super) is_batch: bool,
    pub(super) function: F,
}

impl<const K: usize, L, F> Units for HostUnits<K, L, F>
where
    L: AccessList<K>,
    F: for<'v> Fn(&Tile<K>, L::Views<'v>) -> Result<ControlFlow<()>, HostError> + Send + Sync + 'static,
{
    fn attach(&mut self, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
        L::attach(&mut self.bound, versions)
    }

    unsafe fn call(
        &self,
        units: Range<usize>,
        replay: u64,
        is_checked: bool,
    ) -> Result<ControlFlow<()>, Cause> {
        let Calls { chunks, is_batch, function } = &self.calls;
        let pattern = is_checked.then(Pattern::draw);
        for chunk in units.start..units.end.min(chunks.len()) {
            let tile = Tile::new(chunks[chunk]).in_replay(replay);
            let name = is_batch.then_some(tile.range());
            // SAFETY: the caller promises it.
            let flow = unsafe {
                body::call_host::<K, L, _>(&self.bound, chunk, pattern.as_ref(), name, |views| {
                    function(&tile, views)
                })
            }?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    unsafe fn end(&self) -> Result<(), Cause> {
        Ok(())
    }
}
