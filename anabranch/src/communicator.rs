//! Communicators: how tasks call libraries that use MPI.

use crate::{data::host_object::HostObject, error::Error, runtime::Runtime};
use anabranch_wire::MpiComm;
use std::fmt;

/// A communicator of MPI for collective tasks, which call functions of MPI, or of a library that uses it: see [`Runtime::communicator`].
///
/// A [`collective`](crate::interface::NewTask::collective) task declares a [`sequential()`](crate::sequential) effect on it, and gets the
/// handle: an `Option<`[`MpiComm`]`>`, which is `None` if there is no MPI, because the program runs on one node or on
/// [`local_nodes`](crate::local_nodes).
///
/// - The tasks of one communicator run in the order in which they were submitted, so all nodes make its calls in the same order. Tasks of
///   different communicators may run at the same time.
/// - Such a task begins on all nodes or on none. A node in a call of MPI waits for all others, and no error of the program can
///   wake it. So before the task begins, all nodes meet. If something that it needs has failed on any of them, or it was cancelled on any of
///   them, all of them skip it. Only the end of the whole run may come between: see [`node_timeout`](crate::Builder::node_timeout).
/// - Its other effects are sequential, too. Its function must not wait for a lock that the function of another communicator may hold: on
///   another node that one may wait for this one.
/// - A task that fails breaks the communicator: later tasks of it are skipped on all nodes. Inside the task it is up to the function that
///   an error on one node does not leave the others in a call.
#[derive(Clone)]
pub struct Communicator {
    pub(crate) object: HostObject<Option<MpiComm>>,
}

impl Communicator {
    /// Names the communicator, for messages and printed graphs. Only the first call has an effect.
    pub fn named(self, name: impl fmt::Display) -> Self {
        Self { object: self.object.named(name) }
    }
}

impl fmt::Debug for Communicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object.fmt(f)
    }
}

impl Runtime {
    /// Makes a communicator of all nodes, for tasks that call MPI or a library that uses it. The [builder](crate::Builder::communicators)
    /// must permit it.
    ///
    /// ```
    /// use anabranch::prelude::*;
    /// use std::ffi::{c_int, c_void};
    ///
    /// # unsafe extern "C" fn solver_solve(_: *mut c_void, _: *mut f64, _: usize) -> c_int { 0 }
    /// # fn solve_alone(u: &mut [f64]) { u.fill(1.0) }
    /// let rt = Runtime::builder().communicators(true).build()?;
    /// let comm = rt.communicator()?;
    /// let (u, nodes) = (rt.buffer_from(&[0.0; 100])?, rt.nodes());
    /// // Each node hands its rows to a library that was compiled with Open MPI.
    /// rt.task("solve").collective().update(&u, even_split()).effect(&comm, sequential()).host(move |_, (u, comm)| {
    ///     let rows = u.as_mut_slice().ok_or("rows lie side by side")?;
    ///     let Some(comm) = comm else {
    ///         // Without MPI: on one node these are all rows.
    ///         return if nodes == 1 { Ok(solve_alone(rows)) } else { Err("several nodes need MPI".into()) };
    ///     };
    ///     let comm = comm.open_mpi().ok_or("the solver needs Open MPI")?;
    ///     // SAFETY: the communicator is one of the library that the solver was compiled with, and this task alone uses it now.
    ///     match unsafe { solver_solve(comm, rows.as_mut_ptr(), rows.len()) } {
    ///         0 => Ok(()),
    ///         code => Err(format!("the solver failed with code {code}")),
    ///     }
    /// })?;
    /// rt.wait()?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// All nodes must call it at the same point of the program, and meet there. The communicator is valid as long as the runtime, which
    /// frees it. An error in a call of MPI ends all processes, as is the rule in MPI, unless the program gives the communicator another handler.
    ///
    /// If the program links an MPI library, the runtime uses the same one, if both are from one installation. The program need not initialise
    /// MPI. If it does so before it builds a runtime, then with `MPI_THREAD_MULTIPLE`.
    ///
    /// # Errors
    /// [`Error::Setting`] if the builder does not permit communicators, or if the program has made as many as
    /// there are [host lanes](crate::Builder::host_lanes), broken ones included. With [several nodes](crate::guide::nodes), if the run has ended or if this thread may not
    /// submit.
    pub fn communicator(&self) -> Result<Communicator, Error> {
        let handle = self.core.make_communicator()?;
        let (id, number) = self.core.create_object(None);
        Ok(Communicator { object: HostObject::new(id, number, handle, self.core.owner()) })
    }
}
