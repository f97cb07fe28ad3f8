//! Communicators for the MPI calls of the program.

use super::super::core::Core;
use crate::error::Error;
use anabranch_wire::MpiComm;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const CALL: &str = "Runtime::communicator";

impl Core {
    /// Makes a communicator of all nodes; `None` if there is no MPI.
    ///
    /// # Errors
    /// [`Error::Setting`]. With several nodes: if the calling thread may not submit, or the run has ended.
    pub(crate) fn make_communicator(&self) -> Result<Option<MpiComm>, Error> {
        self.id().check_process(CALL)?;
        self.check_submitter(|| CALL.into())?;
        self.permit_communicator().map_err(|error| self.refuse(error))?;
        match self.cluster() {
            Some(cluster) => Ok(cluster.make_communicator(CALL)?),
            None => Ok(None),
        }
    }

    fn permit_communicator(&self) -> Result<(), Error> {
        let Some(communicators) = &self.communicators else {
            let (value, range) =
                ("false".into(), "true: call `communicators(true)` of the builder before `build`");
            return Err(Error::Setting { setting: "communicators", value, range });
        };
        communicators.add().map_err(|number| {
            let (setting, value) = ("the number of communicators", number.to_string());
            Error::Setting {
                setting,
                value,
                range: "at most `host_lanes`: use one for several tasks, or set more lanes",
            }
        })
    }
}

/// The communicators that a program has made.
pub(in crate::execute) struct Communicators {
    made: AtomicUsize,
    limit: usize,
}

impl Communicators {
    /// There are at most as many as host lanes. A task of each of them may wait for other nodes in a call of MPI, on a lane. If there were
    /// more, all lanes of one node could wait for tasks that have no lane on another one.
    pub(in crate::execute) fn new(host_lanes: usize) -> Self {
        Self { made: AtomicUsize::new(0), limit: host_lanes }
    }

    /// Counts one more, or returns its number if that is too large.
    fn add(&self) -> Result<(), usize> {
        let one_more = |made: usize| (made < self.limit).then_some(made + 1);
        self.made.fetch_update(Relaxed, Relaxed, one_more).map(drop).map_err(|made| made + 1)
    }
}
