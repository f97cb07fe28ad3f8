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
pub(super) struct HostUnit<L: AccessList<0>, F> {
    pub(super) bound: L::Bound,
    pub(super) function: Arc<F>,
}

impl<L, F> Units for HostUnit<L, F>
where
    L: AccessList<0>,
    F: for<'v> Fn(u64, L::Views<'v>) -> Result<ControlFlow<()>, HostError> + Send + Sync + 'static,
{
    fn attach(&mut self, versions: &mut dyn Iterator<Item = u32>) -> Result<(), Error> {
        L::attach(&mut self.bound, versions)
    }

    unsafe fn call(&self, _: Range<usize>, replay: u64, is_checked: bool) -> Result<ControlFlow<()>, Cause> {
        let pattern = is_checked.then(Pattern::draw);
        // SAFETY: the caller promises it.
        let call = || unsafe {
            body::call::<0, L, _, _>(&self.bound, 0, pattern.as_ref(), |views| (self.function)(replay, views))
        };
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(result) => result.map_err(Cause::Error),
            Err(payload) => Err(Cause::from_panic(payload, None)),
        }
    }

    unsafe fn end(&self) -> Result<(), Cause> {
        Ok(())
    }
}
