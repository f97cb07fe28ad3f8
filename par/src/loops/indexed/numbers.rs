//! Sums, products and extremes of the numbers of a source, in lanes that the compiler turns into vector
//! instructions.

use crate::{
    Loop, Number, Source, Step,
    loops::{number::NumberRef, output::Output},
};
use std::convert::Infallible;

/// How many partial results a participant keeps at a time: enough to hide the latency of an addition.
const LANES: usize = 16;

impl<S: Source, Q: Step<S::Item>> Loop<'_, S, Q> {
    /// Combines numbers with `op`: in lanes within each leaf, and then in a tree.
    pub(super) fn fold_lanes<N>(self, identity: N, op: impl Fn(N, N) -> N + Copy + Sync) -> Option<N>
    where
        Q::Out: NumberRef<Number = N>,
        N: Number,
    {
        let split = self.settings.leaves_of_numbers(self.len());
        let mut leaves: Vec<Option<N>> = Vec::new();
        let output = Output::behind(&mut leaves, split.chunks());
        let done = self.run_chunks::<Infallible, _>(split, None, |chunks, mut batch| {
            // SAFETY: batches are disjoint, and so are their chunks.
            let mut writer = unsafe { output.writer(chunks.clone()) };
            for chunk in chunks {
                let leaf = batch.split_off(split.chunk(chunk).end);
                let lanes = leaf.fold_lanes::<N, LANES>(identity, |sum, item| op(sum, item.number()));
                writer.push(Some(pairwise(lanes, op)));
            }
            Ok(())
        });
        done.unwrap_or_else(|error| error.resume());
        output.finish();
        // SAFETY: every leaf was written.
        unsafe { leaves.set_len(split.chunks()) };
        let combined = self.combine::<_, Infallible>(&split, &mut leaves, &op, true);
        combined.unwrap_or_else(|error| error.resume())
    }
}

/// Combines lane k with lane k + half, until one is left.
#[inline]
fn pairwise<N: Copy>(mut lanes: [N; LANES], op: impl Fn(N, N) -> N) -> N {
    let mut half = LANES / 2;
    while half > 0 {
        for k in 0..half {
            lanes[k] = op(lanes[k], lanes[k + half]);
        }
        half /= 2;
    }
    lanes[0]
}
