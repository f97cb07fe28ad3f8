//! Communicators for the MPI calls of the program.

use super::super::core::Core;
use crate::error::Error;
use anabranch_wire::MpiComm;
use std::sync::atomic::Ordering::Relaxed;

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

    /// Counts a communicator. A task of each of them may wait for other nodes in a call of MPI, on a host lane. If there were more
    /// communicators than lanes, all lanes of one node could wait for tasks that have no lane on another one.
    fn permit_communicator(&self) -> Result<(), Error> {
        let Some(left) = &self.communicators_left else {
            let (value, range) =
                ("false".into(), "true: call `communicators(true)` of the builder before `build`");
            return Err(Error::Setting { setting: "communicators", value, range });
        };
        let one_less = |left: usize| left.checked_sub(1);
        left.fetch_update(Relaxed, Relaxed, one_less).map(drop).map_err(|_| {
            let (setting, value) = ("the number of communicators", "one more".into());
            Error::Setting {
                setting,
                value,
                range: "at most `host_lanes`: use one for several tasks, or set more lanes",
            }
        })
    }
}
