//! Sequences in the model: one task with the accesses of all kernels, and values that are computed kernel by
//! kernel, replay by replay.

use super::{
    Model, Part, Task, done,
    observation::{Observation, Refusal},
    tasks::read_by,
};
use crate::program::{RANKS, Replays};
use anabranch::grid::Region;

impl<'p> Model<'p> {
    pub(super) fn replays(&mut self, i: usize, step: &'p Replays) -> Observation {
        let (mut needed, mut written) =
            (vec![Region::empty(); RANKS.len()], vec![Region::empty(); RANKS.len()]);
        for kernel in &step.body {
            let read = read_by(kernel, self.buffers[kernel.from].shape, RANKS[kernel.to]);
            let target = Region::from(kernel.target);
            // Such a sequence cannot be recorded.
            if self.is_outside(kernel.from, &read) || self.is_outside(kernel.to, &target) {
                return Observation::Refused(Refusal::Outside);
            }
            let reads = [Some((kernel.from, read)), kernel.update.then(|| (kernel.to, target.clone()))];
            for (slot, read) in reads.into_iter().flatten() {
                // What the sequence has written itself comes from no task before it.
                needed[slot] = needed[slot].union(&read.difference(&written[slot]));
            }
            written[kernel.to] = written[kernel.to].union(&target);
        }
        if let Some(sum) = &step.sum {
            let (read, whole) = (Region::from(sum.space), Region::from(self.buffers[sum.to].shape.whole()));
            if self.is_outside(sum.from, &read) {
                return Observation::Refused(Refusal::Outside);
            }
            let reads = [Some((sum.from, read)), sum.include.then(|| (sum.to, whole.clone()))];
            for (slot, read) in reads.into_iter().flatten() {
                needed[slot] = needed[slot].union(&read.difference(&written[slot]));
            }
            written[sum.to] = written[sum.to].union(&whole);
        }
        let of_slots = |regions: Vec<Region<3>>| {
            (0..).zip(regions).filter(|(_, region)| !region.is_empty()).collect::<Vec<(usize, Region<3>)>>()
        };
        let reads = of_slots(needed);
        let task = Task {
            parts: vec![Part { node: 0, reads: reads.clone(), writes: Region::empty(), pieces: vec![] }],
            nodes: vec![0],
            reads,
            writes: of_slots(written),
            update: false,
            effects: &step.effects,
            on_cluster: vec![],
            fails: step.failure().is_some(),
            device: None,
        };
        let result = self.begin(i, &task);
        if result == done() {
            for replay in 0..step.replays {
                for (place, kernel) in step.body.iter().enumerate() {
                    self.apply(Replays::seed(i, place, replay), kernel);
                }
                if let Some(sum) = &step.sum {
                    let chunks = sum.split.chunks(RANKS[sum.from], &sum.space);
                    self.apply_reduction(Replays::seed(i, step.body.len(), replay), sum, chunks);
                }
                for &(object, order) in &step.effects {
                    let mut hash = Replays::seed(i, step.body.len() + 1, replay) as u64;
                    self.objects[0][object].touch(order, &mut hash);
                }
            }
        }
        result
    }
}
