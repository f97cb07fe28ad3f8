//! Communicators of MPI for the program.

use std::{
    ffi::{c_int, c_void},
    fmt, ptr,
};

/// The handle of a communicator of MPI, which C calls `MPI_Comm`. Its type, and what it means, depend on the
/// MPI library that was found.
///
/// ```
/// use std::ffi::{c_int, c_void};
///
/// /// Calls a function of a library that was compiled with Open MPI.
/// fn solve(comm: anabranch_wire::MpiComm, solver: unsafe extern "C" fn(*mut c_void) -> c_int) -> Result<(), String> {
///     let comm = comm.open_mpi().ok_or("the solver needs Open MPI: start the program with its mpirun")?;
///     // SAFETY: the communicator is one of the library that the solver was compiled with, and nothing else uses it now.
///     match unsafe { solver(comm) } {
///         0 => Ok(()),
///         code => Err(format!("the solver failed with code {code}")),
///     }
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MpiComm(Kind);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    OpenMpi(usize),
    Mpich(c_int),
    Mpi5(usize),
}

impl MpiComm {
    pub(crate) fn of_open_mpi(handle: usize) -> Self {
        Self(Kind::OpenMpi(handle))
    }

    pub(crate) fn of_mpich(handle: c_int) -> Self {
        Self(Kind::Mpich(handle))
    }

    pub(crate) fn of_mpi_5(handle: usize) -> Self {
        Self(Kind::Mpi5(handle))
    }

    /// The handle for code that was compiled with Open MPI. `None` if the library is another one.
    pub fn open_mpi(self) -> Option<*mut c_void> {
        match self.0 {
            Kind::OpenMpi(handle) => Some(ptr::without_provenance_mut(handle)),
            _ => None,
        }
    }

    /// The handle for code that was compiled with MPICH or a relative of it (Intel MPI, MVAPICH, Cray MPICH).
    /// `None` if the library is another one.
    pub fn mpich(self) -> Option<c_int> {
        match self.0 {
            Kind::Mpich(handle) => Some(handle),
            _ => None,
        }
    }

    /// The handle for code that was compiled with the binary interface of MPI 5 (`mpicc_abi`). `None` if the
    /// library has another one.
    pub fn mpi_abi(self) -> Option<*mut c_void> {
        match self.0 {
            Kind::Mpi5(handle) => Some(ptr::without_provenance_mut(handle)),
            _ => None,
        }
    }
}

impl fmt::Debug for MpiComm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::OpenMpi(handle) => write!(f, "MpiComm({handle:#x} of Open MPI)"),
            Kind::Mpich(handle) => write!(f, "MpiComm({handle:#x} of MPICH)"),
            Kind::Mpi5(handle) => write!(f, "MpiComm({handle:#x} of MPI 5)"),
        }
    }
}
