//! MPI, found at run time: nothing of it is linked.
//!
//! [`connect`] loads a library that fits the launcher, initialises MPI for calls by one thread at a time, or
//! by several if the program is to have communicators of its own, and makes a communicator for this crate.
//! When the process exits, MPI is finalised, unless the communication has failed: then the launcher sees a
//! process that ended without it, and ends the others. If the program has initialised MPI itself, it also
//! finalises it.

#[cfg(test)]
mod headers;
pub(crate) mod interface;
mod slot;
mod transport;

use crate::{
    Endpoint, Options, WireError,
    launch::Launch,
    mpi_ffi::{self, AnyLibrary, Library, Loaded},
};
use interface::{Handle, Interface};
use slot::{Idle, Slot};
use transport::Connection;

/// This process's end of the program that the launcher has started.
pub(crate) fn connect(launch: &Launch, options: &Options) -> Result<Endpoint, WireError> {
    let connection = match slot::take() {
        Slot::Taken => return Err(WireError::Connected),
        Slot::Failed => {
            slot::put(Slot::Failed);
            return Err(WireError::Disconnected);
        }
        Slot::Idle(connection) => connection,
        Slot::Empty => load(launch, options).inspect_err(|_| slot::put(Slot::Empty))?,
    };
    if options.communicators
        && let Err(error) = connection.check_threads()
    {
        slot::put(Slot::Idle(connection));
        return Err(error);
    }
    Ok(Endpoint::boxed(connection.open(), options))
}

fn load(launch: &Launch, options: &Options) -> Result<Box<dyn Idle>, WireError> {
    let mut tried = Vec::new();
    for name in launch.libraries() {
        match Loaded::open(&name) {
            Ok(loaded) => return start(launch, options, &name, &loaded),
            Err(why) => tried.push(if why.contains(&name) { why } else { format!("{name}: {why}") }),
        }
    }
    Err(launch.no_mpi(&tried.join("; ")))
}

fn start(
    launch: &Launch,
    options: &Options,
    name: &str,
    loaded: &Loaded,
) -> Result<Box<dyn Idle>, WireError> {
    let unknown = |why: String| WireError::UnknownMpi { library: name.to_owned(), why };
    let version = loaded.version().ok_or_else(|| unknown("it has no MPI_Get_library_version".to_owned()))?;
    let interface = Interface::of(name, &version).ok_or_else(|| {
        unknown(format!("its interface is unknown: {}", version.lines().next().unwrap_or("")))
    })?;
    let library =
        AnyLibrary::of(loaded, interface).map_err(|symbol| unknown(format!("it has no {symbol}")))?;
    match library {
        AnyLibrary::Wide(library) => begin(launch, options, name, library),
        AnyLibrary::Narrow(library) => begin(launch, options, name, library),
    }
}

fn begin<H: Handle>(
    launch: &Launch,
    options: &Options,
    name: &str,
    library: Library<H>,
) -> Result<Box<dyn Idle>, WireError> {
    let fail =
        |mpi_ffi::Failure(function, message)| WireError::Mpi { function, node: launch.node(), message };
    let ours = !library.is_initialized().map_err(fail)?;
    let level =
        if ours { library.initialize(options.communicators) } else { library.threads() }.map_err(fail)?;
    if !library.is_serialized(level) {
        return Err(WireError::Threads { library: name.to_owned() });
    }
    let connection = Connection::new(library, name, level, |found| launch.check_nodes(found, name))?;
    if ours {
        mpi_ffi::at_exit(end);
    }
    Ok(Box::new(connection))
}

/// Called when the process exits.
extern "C" fn end() {
    if let Slot::Idle(connection) = slot::take() {
        connection.end();
    }
}
