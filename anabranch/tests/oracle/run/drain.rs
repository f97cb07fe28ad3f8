//! The last step of a program that needs the runtime: a drain, which ends it.

use super::{
    Run,
    buffers::{AnyBuffer, part, parts_of, with_rank},
    results::{Numbers, refusal, waited},
};
use crate::{
    common::block_on,
    model::Observation,
    program::{CaptureSet, OBJECTS},
};
use anabranch::{
    Error,
    interface::{Captures, Moves},
    prelude::*,
};
use std::sync::Arc;

impl Run<'_> {
    pub(super) fn drain(&mut self, set: &CaptureSet, awaited: bool) -> Observation {
        // The functions of these tasks have the runtime.
        for task in self.tasks.iter().filter(|task| task.has_runtime) {
            let _ = task.handle.wait();
        }
        let rt = self.take_runtime();
        let nodes = rt.nodes();
        let objects = |object: usize| self.objects[object].capture();
        let cluster = |object: usize| self.cluster[object].0.capture();
        let result = match *set {
            CaptureSet::Nothing => drain(rt, (), awaited),
            CaptureSet::OfNodes(slot, parts) => {
                with_rank!(&self.buffers[slot], b => drain(rt, parts_of(b, parts), awaited))
            }
            CaptureSet::On(slot, node) => {
                with_rank!(&self.buffers[slot], b => drain(rt, b.capture_on(node % nodes), awaited))
            }
            CaptureSet::Cluster(object) => drain(rt, cluster(object), awaited),
            CaptureSet::ClusterAndPart(object, slot, range) => {
                with_rank!(&self.buffers[slot], b => drain(rt, (cluster(object), part(b, &range)), awaited))
            }
            CaptureSet::Object(object) => drain(rt, objects(object), awaited),
            CaptureSet::Objects => drain(rt, (objects(0), objects(1)), awaited),
            CaptureSet::Part(slot, range) => {
                with_rank!(&self.buffers[slot], b => drain(rt, part(b, &range), awaited))
            }
            CaptureSet::Both(object, slot, range) => {
                with_rank!(&self.buffers[slot], b => drain(rt, (objects(object), part(b, &range)), awaited))
            }
            CaptureSet::Parts([(slot, range), (other, second)]) => with_rank!(&self.buffers[slot], b => {
                with_rank!(&self.buffers[other], c => drain(rt, (part(b, &range), part(c, &second)), awaited))
            }),
        };
        self.check_ended(None);
        if result.is_ok() {
            return Observation::Drained(Box::new(waited(result)), Vec::new());
        }
        let result = match result {
            Err(error @ Error::Declaration(_)) => refusal(error),
            other => waited(other),
        };
        // Last first, so that the numbers of the others stay.
        let mut kept: Vec<_> =
            (0..OBJECTS).rev().map(|at| self.objects.remove(at).into_inner().ok()).collect();
        kept.reverse();
        let mut kept: Vec<_> = kept.into_iter().map(|state| state.map(Numbers::numbers)).collect();
        let mut kept: Vec<_> = set.objects().into_iter().map(|object| kept[object].take()).collect();
        let of_cluster = set.of_cluster().map(|object| self.cluster.swap_remove(object).0.into_inner().ok());
        kept.extend(of_cluster.map(|state| state.map(Numbers::numbers)));
        Observation::Drained(Box::new(result), kept)
    }

    /// Takes the runtime for the drain.
    fn take_runtime(&mut self) -> Runtime {
        // A waker may have it for a moment.
        loop {
            match Arc::try_unwrap(self.rt.take().expect("one drain")) {
                Ok(rt) => return rt,
                Err(shared) => self.rt = Some(shared),
            }
            std::thread::yield_now();
        }
    }
}

fn drain<C: Captures<Moves, Output: Numbers>>(
    rt: Runtime,
    captures: C,
    awaited: bool,
) -> Result<Vec<u64>, Error> {
    let captured = if awaited { block_on(rt.drain_async(captures)) } else { rt.drain(captures) };
    captured.map(Numbers::numbers)
}
