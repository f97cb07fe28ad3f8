//! Parts of tasks on this node: the runtime looks up each part in [`poison`](super::poison) before it runs,
//! and enters how it has ended.

use crate::{
    error::{Cause, Failure},
    execute::{
        core::Core,
        task::part::{Part, Writes},
    },
};
use std::sync::Arc;

impl Core {
    /// The failure because of which a part of a task cannot run, if there is one.
    #[inline]
    pub(in crate::execute) fn poison_of(&self, part: &Part) -> Option<Arc<Failure>> {
        let poison = &self.several_nodes()?.context.poison;
        if poison.is_any() { poison.of(part) } else { None }
    }

    /// A part of a task has ended without a failure.
    #[inline]
    pub(in crate::execute) fn part_is_done(&self, part: &Part) {
        if let Some(nodes) = self.several_nodes()
            && nodes.context.poison.is_any()
            && part.writes == Writes::All
        {
            nodes.context.poison.part_is_done(part);
        }
    }

    /// A part of a task has failed, or was skipped.
    #[cold]
    pub(in crate::execute) fn part_has_failed(&self, part: &Part, failure: &Arc<Failure>) {
        // After the end of the run nothing is sent any more.
        if let Some(nodes) = self.several_nodes()
            && !matches!(failure.cause, Cause::Nodes(_))
        {
            nodes.context.poison.part_has_failed(part, failure);
            part.partials.iter().for_each(|lost| drop(lost.set(Arc::clone(failure))));
        }
    }
}
