//! Communicators for the MPI calls of the program.

use crate::{error::Error, execute::core::Core};
use anabranch_wire::MpiComm;

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
