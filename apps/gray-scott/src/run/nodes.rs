//! What the nodes of a run have in common.

use crate::{error::Error, kernel::Stepper};
use anabranch::prelude::*;

/// The nodes of a run, one or several. All nodes have the same values, so that they submit the same tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nodes {
    count: u16,
    /// The threads of all nodes.
    pub(super) threads: usize,
    /// The largest number of steps that a sweep should have.
    pub(super) steps: usize,
}

impl Nodes {
    /// The nodes of the runtime. With several, the first one decides for all.
    pub(super) fn new(rt: &Runtime, stepper: &Stepper) -> Result<Self, Error> {
        let (count, mut values) = (rt.nodes(), [rt.threads(), stepper.preferred_steps()]);
        if count > 1 {
            let own = values.map(|value| value as u64);
            let decided = rt.buffer::<u64, 1>([own.len()]).named("decided");
            let task = rt.task("decide").once().write(&decided, all());
            task.host(move |(decided,)| decided.fill_with(|[i]| own[i]))?;
            let decided = rt.fence(&decided)?.wait()?;
            values = [0, 1].map(|i| decided[[i]] as usize);
        }
        let [threads, steps] = values;
        Ok(Self { count, threads: threads * usize::from(count), steps })
    }

    pub(super) fn are_several(&self) -> bool {
        self.count > 1
    }

    /// The node of a band: consecutive bands are on the same node.
    pub(super) fn of_band(&self, band: usize, bands: usize) -> u16 {
        (band * usize::from(self.count) / bands) as u16
    }
}
