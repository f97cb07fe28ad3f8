//! Communicators of MPI for the program.

use std::{
    ffi::{c_int, c_void},
    fmt, ptr,
};

/// The handle of a communicator of MPI, which C calls `MPI_Comm`. Its type depends on the MPI library that was found.
///
/// ```
/// use std::ffi::{c_int, c_void};
///
/// /// Calls a function of a library that was compiled with Open MPI.
/// fn solve(comm: anabranch_wire::MpiComm, solver: unsafe extern "C" fn(*mut c_void) -> c_int) -> Result<(), String> {
///     let comm = comm.pointer().ok_or("the solver needs Open MPI: start the program with its mpirun")?;
///     // SAFETY: the communicator is one of the library that the solver was compiled with, and nothing else uses it now.
///     match unsafe { solver(comm) } {
///         0 => Ok(()),
///         code => Err(format!("the solver failed with code {code}")),
///     }
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MpiComm(Width);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Width {
    Wide(usize),
    Narrow(c_int),
}

impl MpiComm {
    pub(crate) fn wide(handle: usize) -> Self {
        Self(Width::Wide(handle))
    }

    pub(crate) fn narrow(handle: c_int) -> Self {
        Self(Width::Narrow(handle))
    }

    /// The handle for code that was compiled with Open MPI, or with the ABI of MPI 5. `None` if the library is another one.
    pub fn pointer(self) -> Option<*mut c_void> {
        match self.0 {
            Width::Wide(handle) => Some(ptr::without_provenance_mut(handle)),
            Width::Narrow(_) => None,
        }
    }

    /// The handle for code that was compiled with MPICH or a relative of it (Intel MPI, MVAPICH, Cray MPICH). `None` if the library is
    /// another one.
    pub fn int(self) -> Option<c_int> {
        match self.0 {
            Width::Wide(_) => None,
            Width::Narrow(handle) => Some(handle),
        }
    }
}

impl fmt::Debug for MpiComm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Width::Wide(handle) => write!(f, "MpiComm({handle:#x})"),
            Width::Narrow(handle) => write!(f, "MpiComm({handle:#x})"),
        }
    }
}
