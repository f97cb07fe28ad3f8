//! What a sequence reads that must be there before its first replay.

use super::owner::Owner;
use crate::{
    data::{buffer::Buffer, element::Element, owner::is_owned_by},
    error::Error,
    label::Label,
    submit::launch::declaration::explain,
};
use anabranch_graph::{Access, Mode};
use anabranch_grid::{GridBox, Region};

/// An access, with the label and rank of the buffer.
type Named = (Access, Label, usize);

/// What the tasks of a sequence access together.
pub(super) struct Needs(Vec<Named>);

impl Needs {
    pub(super) fn new(accesses: Vec<Named>) -> Self {
        Self(accesses)
    }

    /// Checks that what the tasks read was written, by tasks before them or by tasks of the sequence. So a
    /// sequence whose tasks are submitted one by one is refused as a whole.
    pub(super) fn check(&self, owner: &Owner) -> Result<(), Error> {
        self.check_with(owner, None)
    }

    /// As [`check`](Self::check), for a sequence after whose tasks a condition reads all of this buffer.
    pub(super) fn check_until<T: Element, const D: usize>(
        &self,
        owner: &Owner,
        buffer: &Buffer<T, D>,
    ) -> Result<(), Error> {
        let (core, inner) = (owner.running.core(), &buffer.inner);
        if !is_owned_by(&inner.owner, core) {
            return Err(core.refuse(Error::OtherRuntime { what: inner.label().to_string() }));
        }
        let of_buffer =
            self.0.iter().filter(|(access, ..)| access.buffer == inner.id && access.mode.writes());
        let whole = Region::from(GridBox::full(buffer.extent()).cast());
        let region = of_buffer.fold(whole, |rest, (access, ..)| rest.difference(&access.region));
        let access = Access { buffer: inner.id, region, mode: Mode::Read };
        self.check_with(owner, Some((access, inner.label(), D)))
    }

    fn check_with(&self, owner: &Owner, last: Option<Named>) -> Result<(), Error> {
        let core = owner.running.core();
        core.check_submitter(|| owner.label.to_string())?;
        let reads = self.0.iter().filter(|(access, ..)| access.mode.reads()).chain(&last);
        let reads: Vec<&Named> = reads.collect();
        let accesses = reads.iter().map(|(access, ..)| Access { mode: Mode::Read, ..access.clone() });
        core.check_accesses(&accesses.collect::<Vec<_>>()).map_err(|error| {
            let labels: Vec<_> = reads.iter().map(|(_, label, rank)| (label.clone(), *rank)).collect();
            core.refuse(explain(&owner.label, error, &labels))
        })
    }
}
