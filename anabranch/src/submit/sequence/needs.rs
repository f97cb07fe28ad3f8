//! What a sequence reads that must be there before its first replay.

use super::owner::Owner;
use crate::{error::Error, label::Label, submit::launch::declaration::explain};
use anabranch_graph::{
    Access, BufferId, Mode,
    repeat::{Repeat, Unit},
};

/// The label and rank of each buffer that tasks access.
#[derive(Clone, Default)]
pub(super) struct Named(Vec<(BufferId, (Label, usize))>);

impl Named {
    /// Adds the buffers of these accesses.
    pub(super) fn add(&mut self, accesses: &[Access], labels: &[(Label, usize)]) {
        for (access, label) in accesses.iter().zip(labels) {
            if self.0.iter().all(|(known, _)| *known != access.buffer) {
                self.0.push((access.buffer, label.clone()));
            }
        }
    }

    pub(super) fn extend(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }

    pub(super) fn get(&self, buffer: BufferId) -> &(Label, usize) {
        let found = self.0.iter().find(|(known, _)| *known == buffer);
        &found.expect("a task accesses it").1
    }
}

/// What the tasks of a sequence access, one after the other.
#[derive(Clone, Default)]
pub(super) struct Needs {
    tasks: Repeat,
    buffers: Named,
}

impl Needs {
    /// Adds a task with these accesses.
    pub(super) fn add(&mut self, accesses: &[Access], labels: &[(Label, usize)]) {
        self.buffers.add(accesses, labels);
        self.tasks.push(Unit::of(accesses.iter().cloned()));
    }

    /// Adds a task that has been recorded by itself.
    pub(super) fn add_recorded(&mut self, accesses: &[Access], buffers: &Named) {
        self.buffers.extend(buffers);
        self.tasks.push(Unit::of(accesses.iter().cloned()));
    }

    /// Checks that what the tasks read was written, by tasks before them or by tasks of the sequence. So a
    /// sequence whose tasks are submitted one by one is refused as a whole.
    pub(super) fn check(&self, owner: &Owner) -> Result<(), Error> {
        let core = owner.running.core();
        core.check_submitter(|| owner.label.to_string())?;
        let reads = self.tasks.accesses().into_iter().filter(|access| access.mode.reads());
        let reads: Vec<_> = reads.map(|access| Access { mode: Mode::Read, ..access }).collect();
        core.check_accesses(&reads).map_err(|error| {
            let labels: Vec<_> = reads.iter().map(|read| self.buffers.get(read.buffer).clone()).collect();
            core.refuse(explain(&owner.label, error, &labels))
        })
    }
}
