//! The three binary interfaces of MPI: the widths of handles, and the constants.
//!
//! | interface | libraries | handles |
//! |---|---|---|
//! | Open MPI | `libmpi.so.40`: Open MPI 3 to 5 | pointers, to objects of the library |
//! | MPICH | `libmpi.so.12`, `libmpich.so.12`: MPICH, Intel MPI, MVAPICH, Cray MPICH | ints |
//! | MPI 5 | `libmpi_abi.so.0` | pointers, with the values of the standard |
//!
//! A test compares these constants with the headers that are installed. Those of MPI 5 are tried with a
//! library that a test makes.

use crate::MpiComm;
use std::{ffi::c_int, fmt};

/// A handle of MPI.
pub(crate) trait Handle: Copy + PartialEq + Send + Sync + fmt::Debug + 'static {
    /// The handle, if it is that of a communicator, for the program.
    fn communicator(self, interface: Interface) -> MpiComm;
}

/// The handles of Open MPI and of MPI 5: pointers, which are only names here.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(transparent)]
pub(crate) struct Wide(usize);

impl Handle for Wide {
    fn communicator(self, interface: Interface) -> MpiComm {
        match interface {
            Interface::Mpi5 => MpiComm::of_mpi_5(self.0),
            _ => MpiComm::of_open_mpi(self.0),
        }
    }
}

/// The handles of MPICH.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(transparent)]
pub(crate) struct Narrow(c_int);

impl Handle for Narrow {
    fn communicator(self, _: Interface) -> MpiComm {
        MpiComm::of_mpich(self.0)
    }
}

#[cfg(test)]
impl Narrow {
    pub fn number(self) -> c_int {
        self.0
    }
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        #[repr(transparent)]
        pub(crate) struct $name<H>(pub H);
    )*};
}

handles! {
    /// A communicator.
    Comm
    /// A type of data.
    Datatype
    /// An operation that is under way.
    Request
    /// What to do about errors.
    Errhandler
}

/// What differs between MPI libraries.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Constants<H> {
    pub world: Comm<H>,
    pub byte: Datatype<H>,
    pub request_null: Request<H>,
    pub errors_return: Errhandler<H>,
    pub errors_are_fatal: Errhandler<H>,
    pub any_source: c_int,
    pub tag_ub: c_int,
    pub serialized: c_int,
    pub multiple: c_int,
    /// The address that stands for a status which is not wanted.
    pub ignore: usize,
}

/// A binary interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interface {
    OpenMpi,
    Mpich,
    Mpi5,
}

impl Interface {
    /// The interface of a library with this name, which says this about itself.
    pub fn of(name: &str, version: &str) -> Option<Self> {
        let is_one_of = |words: &[&str]| words.iter().any(|word| version.contains(word));
        if name.contains("mpi_abi") {
            Some(Self::Mpi5)
        } else if is_one_of(&["Open MPI"]) {
            Some(Self::OpenMpi)
        } else if is_one_of(&["MPICH", "Intel(R) MPI", "MVAPICH"]) {
            Some(Self::Mpich)
        } else {
            None
        }
    }
}

impl Constants<Wide> {
    /// Those of Open MPI, most of which are addresses of symbols.
    ///
    /// # Errors
    /// With a symbol that the library does not have.
    pub fn of_open_mpi(address: impl Fn(&str) -> Option<usize>) -> Result<Self, &'static str> {
        let handle = |symbol: &'static str| address(symbol).map(Wide).ok_or(symbol);
        Ok(Self {
            world: Comm(handle("ompi_mpi_comm_world")?),
            byte: Datatype(handle("ompi_mpi_byte")?),
            request_null: Request(handle("ompi_request_null")?),
            errors_return: Errhandler(handle("ompi_mpi_errors_return")?),
            errors_are_fatal: Errhandler(handle("ompi_mpi_errors_are_fatal")?),
            any_source: -1,
            tag_ub: 0,
            serialized: 2,
            multiple: 3,
            ignore: 0,
        })
    }

    /// Those of the MPI 5 standard.
    pub const MPI_5: Self = Self {
        world: Comm(Wide(0x101)),
        byte: Datatype(Wide(0x247)),
        request_null: Request(Wide(0x180)),
        errors_return: Errhandler(Wide(0x142)),
        errors_are_fatal: Errhandler(Wide(0x141)),
        any_source: -1,
        tag_ub: 501,
        serialized: 2048,
        multiple: 4096,
        ignore: 0,
    };
}

impl Constants<Narrow> {
    pub const MPICH: Self = Self {
        world: Comm(Narrow(0x4400_0000)),
        byte: Datatype(Narrow(0x4c00_010d)),
        request_null: Request(Narrow(0x2c00_0000)),
        errors_return: Errhandler(Narrow(0x5400_0001)),
        errors_are_fatal: Errhandler(Narrow(0x5400_0000)),
        any_source: -2,
        tag_ub: 0x6440_0001,
        serialized: 2,
        multiple: 3,
        ignore: 1,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_what_they_say() {
        let of = Interface::of;
        assert_eq!(of("libmpi.so.40", "Open MPI v4.1.4, package: Debian"), Some(Interface::OpenMpi));
        assert_eq!(of("libmpich.so.12", "MPICH Version:\t4.0.2"), Some(Interface::Mpich));
        assert_eq!(of("libmpi.so.12", "Intel(R) MPI Library 2021.9 for Linux* OS"), Some(Interface::Mpich));
        assert_eq!(of("/opt/x/libmpi_abi.so.0", "MPICH Version: 5.0.0"), Some(Interface::Mpi5));
        assert_eq!(of("libmpi.so.1", "LAM/MPI 7"), None);
    }

    /// The handles of two interfaces have one type, and code that was compiled for one of them cannot use
    /// those of the other.
    #[test]
    fn the_handles_of_an_interface_are_for_its_own_code() {
        let wide = |interface| Wide(0x5000).communicator(interface);
        let found =
            [wide(Interface::OpenMpi), wide(Interface::Mpi5), Narrow(5).communicator(Interface::Mpich)];
        let whose =
            |comm: MpiComm| [comm.open_mpi().is_some(), comm.mpi_abi().is_some(), comm.mpich().is_some()];
        assert_eq!(found.map(whose), [[true, false, false], [false, true, false], [false, false, true]]);
    }
}
