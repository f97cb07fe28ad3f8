//! Finding the other nodes.

use crate::{
    Endpoint, Options, WireError,
    launch::{Launch, Launched},
    mpi, mpi_ffi, poll_interval,
};

/// Connects this process with the others that `mpirun` or `srun` has started; `None` if it runs alone.
///
/// The environment says whether a launcher started this process. Then MPI is loaded: nothing of it is linked,
/// so that a program runs where no MPI is installed. The first endpoint of a process loads and initialises
/// MPI, later ones use it again; all nodes must connect and finish the same number of times. MPI is finalised
/// when the process exits.
///
/// | variable | value | effect |
/// |---|---|---|
/// | `ANABRANCH_TRANSPORT` | `mpi` | connects by MPI, whatever the environment says about the launcher |
/// | | `none` | every process runs alone |
/// | `ANABRANCH_MPI_LIBRARY` | a name or path | the library to load |
///
/// ```
/// use anabranch_wire::{Options, connect};
///
/// match connect(&Options::new())? {
///     Some(wire) => {
///         println!("{}", wire.place());
///         wire.finish()?;
///     }
///     None => println!("alone"),
/// }
/// # Ok::<(), anabranch_wire::WireError>(())
/// ```
///
/// # Errors
/// A launcher started this process as one of several, but there is no usable MPI library: the error says what
/// to install. The processes never run as if each was alone.
pub fn connect(options: &Options) -> Result<Option<Endpoint>, WireError> {
    let Some(launch) = launch()? else { return Ok(None) };
    poll_interval::set_crowded(launch.launched().here > mpi_ffi::processors());
    mpi::connect(&launch, options).map(Some)
}

/// What a launcher has started this process as: `None` if [`connect`] would leave it alone. Nothing is
/// loaded.
///
/// # Errors
/// [`WireError::Environment`] if a variable has a wrong value.
pub fn launched() -> Result<Option<Launched>, WireError> {
    Ok(launch()?.map(|launch| launch.launched()))
}

fn launch() -> Result<Option<Launch>, WireError> {
    Launch::from(|name| std::env::var(name).ok())
}
