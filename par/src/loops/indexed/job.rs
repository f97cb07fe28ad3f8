//! How a loop over a source runs: participants claim chunks until none is left.

use super::{super::control::LoopControl, batch::SourceBatch};
use crate::{
    Consecutive, Loop, LoopError, Source, Step,
    loops::{control::hooks::OnInterrupt, error::AtItem},
    region::{self, Plan, RegionBody, claims::Claimer},
    thread_pool::state::PoolState,
};
use std::ops::Range;

impl<S: Source, Q: Step<S::Item>> Loop<'_, S, Q> {
    /// The number of items.
    pub(in crate::loops) fn len(&self) -> usize {
        self.source.len()
    }

    /// The chunks that participants claim.
    pub(in crate::loops) fn split(&self) -> Consecutive {
        self.settings.chunks(self.source.len())
    }

    /// Runs the loop: `body` gets all items, in batches that are whole chunks of `split`, and the numbers of
    /// these chunks.
    #[inline]
    pub(in crate::loops) fn run_chunks<E, B>(
        &self,
        split: Consecutive,
        on_interrupt: OnInterrupt<'_>,
        body: B,
    ) -> Result<(), LoopError<E>>
    where
        E: Send,
        B: Fn(Range<usize>, SourceBatch<'_, '_, S, Q>) -> Result<(), AtItem<E>> + Sync,
    {
        let job = SourceJob {
            source: &self.source,
            step: &self.step,
            split,
            body,
            control: self.settings.control(self.source.len(), on_interrupt),
        };
        // The job stays where it is: it is large, and to move it takes a while.
        self.settings.with_pool(|pool| job.run(pool, &self.settings.plan(pool, &split)))?;
        job.control.into_result(Some(self.source.len()))
    }
}

/// A running loop over a source, as its participants see it.
struct SourceJob<'l, S, Q, B, E> {
    source: &'l S,
    step: &'l Q,
    /// The chunks, which are the units that participants claim.
    split: Consecutive,
    /// The work on the items of a run of chunks.
    body: B,
    control: LoopControl<'l, E>,
}

impl<S, Q, B, E> SourceJob<'_, S, Q, B, E>
where
    S: Source,
    Q: Step<S::Item>,
    B: Fn(Range<usize>, SourceBatch<'_, '_, S, Q>) -> Result<(), AtItem<E>> + Sync,
    E: Send,
{
    /// Runs the loop. When this returns, everything that began has ended.
    #[inline]
    fn run(&self, pool: &PoolState, plan: &Plan) -> Result<(), LoopError<E>> {
        pool.check_fork().map_err(LoopError::Forked)?;
        region::run(pool, plan, self);
        Ok(())
    }
}

impl<S, Q, B, E> RegionBody for SourceJob<'_, S, Q, B, E>
where
    S: Source,
    Q: Step<S::Item>,
    B: Fn(Range<usize>, SourceBatch<'_, '_, S, Q>) -> Result<(), AtItem<E>> + Sync,
    E: Send,
{
    fn participate(&self, claimer: &mut Claimer<'_>) {
        self.control.participate(self.step, |participation| {
            loop {
                self.control.check();
                let Some(chunks) = claimer.claim(self.control.limit(&self.split)) else { return };
                let items = self.split.span(&chunks);
                participation.run_batch(items.clone(), |surroundings| {
                    (self.body)(chunks, SourceBatch::new(self.source, items, surroundings))
                });
            }
        });
    }
}
