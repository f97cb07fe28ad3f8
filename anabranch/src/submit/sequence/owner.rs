//! What a sequence belongs to, and what ends its replays early.

use crate::{
    error::{Cause, Error},
    execute::{GroupHandle, Running},
    label::TaskLabel,
};
use anabranch_par::CancellationToken;
use std::{sync::Arc, time::Instant};

/// The runtime and the group of a sequence, and its name.
#[derive(Clone)]
pub(super) struct Owner {
    /// It keeps the runtime running, as a group does.
    pub(super) running: Arc<Running>,
    pub(super) group: Option<GroupHandle>,
    pub(super) label: TaskLabel,
    pub(super) deadline: Option<Instant>,
}

impl Owner {
    /// Whether the group is cancelled.
    pub(super) fn is_cancelled(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.token().is_cancelled())
    }

    /// What ends the replays early.
    pub(super) fn limits(&self) -> Limits {
        Limits { token: self.group.as_ref().map(|group| group.token().clone()), deadline: self.deadline }
    }

    /// Checks that this process may submit replays, and that the nodes need not agree on a moment.
    pub(super) fn check_replay(&self) -> Result<(), Error> {
        let core = self.running.core();
        // Before any lock, which another thread may have held when the process was forked.
        core.id().check_process("submit")?;
        // A dry run returns the error that several nodes would return.
        let are_several = core.nodes() > 1 || core.several_nodes().is_some();
        if self.deadline.is_none() || !are_several {
            return Ok(());
        }
        Err(core.refuse(Error::OneNodeOnly { what: format!("the `deadline` of {}", self.label) }))
    }
}

/// The deadline of a [sequence](crate::Sequence::deadline) passed before all its replays were done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its deadline passed before replay {replay}")]
pub struct DeadlineExceeded {
    /// The number of the replay, from 0, before which the runtime found that the deadline had passed.
    pub replay: u64,
}

impl DeadlineExceeded {
    /// If a deadline has passed now, before the replay with this number.
    pub(super) fn before(replay: u64, deadline: Option<Instant>) -> Option<Self> {
        deadline.is_some_and(|deadline| Instant::now() >= deadline).then_some(Self { replay })
    }
}

/// What ends replays early.
pub(super) struct Limits {
    token: Option<CancellationToken>,
    deadline: Option<Instant>,
}

impl Limits {
    /// Why the replays end before that with this number, if they do.
    pub(super) fn reached(&self, replay: u64) -> Option<Cause> {
        if self.token.as_ref().is_some_and(CancellationToken::is_cancelled) {
            return Some(Cause::ReplaysCancelled);
        }
        DeadlineExceeded::before(replay, self.deadline).map(|passed| Cause::Error(Arc::new(passed)))
    }
}
