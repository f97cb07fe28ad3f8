//! The functions of an MPI library that is loaded at run time, and the few of the system that this crate
//! calls. The compiler cannot check these calls. All `unsafe` code of this crate is here and in
//! [`memory`](crate::memory).
//!
//! The binary interfaces of MPI differ in the width of handles and in constants ([`Constants`]); the
//! functions are the same. A [`Library`] has the type of its handles as a parameter, so that handles of one
//! width cannot get into functions of the other. Statuses are never read: messages say themselves how long
//! they are and where they come from.

#![allow(unsafe_code, reason = "the functions of a library that is loaded at run time")]

use crate::{
    Layout, Memory, MemoryMut, MpiComm,
    mpi::interface::{Comm, Constants, Datatype, Errhandler, Handle, Interface, Narrow, Request, Wide},
};
use std::{
    ffi::{CStr, CString, c_char, c_int, c_void},
    mem, ptr,
};

/// A status, which is always ignored.
pub(crate) enum Status {}

/// An address or a distance in memory. It is `intptr_t` in the ABI of MPI 5, and `long` or the same
/// elsewhere.
type Aint = isize;

/// `MPI_MAX_ERROR_STRING` and `MPI_MAX_LIBRARY_VERSION_STRING` are at most this.
const LONGEST_STRING: usize = 8192;

macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ty),*);)*) => {
        /// The functions of a library.
        pub(crate) struct Functions<H> {
            $($name: unsafe extern "C" fn($($argument),*) -> c_int,)*
        }

        /// The name of each function and the types of its arguments, to be compared with headers.
        #[cfg(test)]
        pub(crate) const SIGNATURES: &[(&str, &[&str])] = &[$(($symbol, &[$(stringify!($argument)),*]),)*];

        impl<H: Handle> Functions<H> {
            /// # Errors
            /// With the name of a function that the library does not have.
            ///
            /// # Safety
            /// The library is an MPI library whose handles are `H`.
            unsafe fn load(library: &Loaded) -> Result<Self, &'static str> {
                Ok(Self {$(
                    $name: {
                        let address = library.symbol($symbol).ok_or($symbol)?;
                        // SAFETY: the function of this name has this type in every MPI library with such
                        // handles; a test compares the types with the headers.
                        unsafe { mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> c_int>(address) }
                    },
                )*})
            }
        }
    };
}

functions! {
    init_thread = "MPI_Init_thread" (*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int);
    initialized = "MPI_Initialized" (*mut c_int);
    query_thread = "MPI_Query_thread" (*mut c_int);
    finalize = "MPI_Finalize" ();
    finalized = "MPI_Finalized" (*mut c_int);
    comm_dup = "MPI_Comm_dup" (Comm<H>, *mut Comm<H>);
    comm_idup = "MPI_Comm_idup" (Comm<H>, *mut Comm<H>, *mut Request<H>);
    comm_free = "MPI_Comm_free" (*mut Comm<H>);
    comm_rank = "MPI_Comm_rank" (Comm<H>, *mut c_int);
    comm_size = "MPI_Comm_size" (Comm<H>, *mut c_int);
    comm_set_errhandler = "MPI_Comm_set_errhandler" (Comm<H>, Errhandler<H>);
    comm_get_attr = "MPI_Comm_get_attr" (Comm<H>, c_int, *mut c_void, *mut c_int);
    isend = "MPI_Isend" (*const c_void, c_int, Datatype<H>, c_int, c_int, Comm<H>, *mut Request<H>);
    issend = "MPI_Issend" (*const c_void, c_int, Datatype<H>, c_int, c_int, Comm<H>, *mut Request<H>);
    irecv = "MPI_Irecv" (*mut c_void, c_int, Datatype<H>, c_int, c_int, Comm<H>, *mut Request<H>);
    test = "MPI_Test" (*mut Request<H>, *mut c_int, *mut Status);
    testsome = "MPI_Testsome" (c_int, *mut Request<H>, *mut c_int, *mut c_int, *mut Status);
    wait = "MPI_Wait" (*mut Request<H>, *mut Status);
    cancel = "MPI_Cancel" (*mut Request<H>);
    abort = "MPI_Abort" (Comm<H>, c_int);
    alltoall = "MPI_Alltoall" (*const c_void, c_int, Datatype<H>, *mut c_void, c_int, Datatype<H>, Comm<H>);
    type_create_hvector = "MPI_Type_create_hvector" (c_int, c_int, Aint, Datatype<H>, *mut Datatype<H>);
    type_commit = "MPI_Type_commit" (*mut Datatype<H>);
    type_free = "MPI_Type_free" (*mut Datatype<H>);
    error_string = "MPI_Error_string" (c_int, *mut c_char, *mut c_int);
}

/// A library in this process. It is never unloaded.
pub(crate) struct Loaded {
    handle: *mut c_void,
}

impl Loaded {
    /// Loads the library, so that the parts that it loads itself find it.
    ///
    /// # Errors
    /// With the message of the system.
    pub fn open(name: &str) -> Result<Self, String> {
        let name = CString::new(name).map_err(|_| "its name has a zero byte".to_owned())?;
        // SAFETY: the name ends with a zero byte. The library's initialisers are those of a library that a
        // user has chosen or that is installed as an MPI library.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if !handle.is_null() {
            return Ok(Self { handle });
        }
        // SAFETY: `dlerror` returns null or a string that ends with a zero byte and stays until the next such
        // call of this thread.
        let message = unsafe {
            let message = libc::dlerror();
            if message.is_null() {
                None
            } else {
                Some(CStr::from_ptr(message).to_string_lossy().into_owned())
            }
        };
        Err(message.unwrap_or_else(|| "it could not be loaded".to_owned()))
    }

    /// The address of a symbol.
    pub fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: the handle is that of a library that is never unloaded, and the name ends with a zero byte.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        (!address.is_null()).then_some(address)
    }

    /// What an MPI library says about itself.
    pub fn version(&self) -> Option<String> {
        type GetVersion = unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int;
        let address = self.symbol("MPI_Get_library_version")?;
        // SAFETY: the function has this type in every MPI library, and may be called at any time.
        let get = unsafe { mem::transmute::<*mut c_void, GetVersion>(address) };
        text(|buffer, length| {
            // SAFETY: the buffer has room for the longest string.
            unsafe { get(buffer, length) }
        })
    }
}

/// Calls the function when the process exits.
pub(crate) fn at_exit(function: extern "C" fn()) {
    // SAFETY: the function is one of this program, and stays.
    let status = unsafe { libc::atexit(function) };
    debug_assert_eq!(status, 0, "there is room for a function");
}

/// The number of processors of this machine, also of those that this process may not use.
pub(crate) fn processors() -> usize {
    #[cfg(unix)]
    {
        // SAFETY: the call has no preconditions.
        let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        usize::try_from(processors).unwrap_or(1).max(1)
    }
    #[cfg(not(unix))]
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The string that a function of MPI writes.
fn text(write: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> Option<String> {
    let (mut buffer, mut length) = (vec![0_u8; LONGEST_STRING + 1], 0);
    if write(buffer.as_mut_ptr().cast(), &mut length) != 0 {
        return None;
    }
    buffer.truncate(usize::try_from(length).ok()?.min(LONGEST_STRING));
    Some(String::from_utf8_lossy(&buffer).trim_end_matches('\0').to_owned())
}

/// A function of MPI that failed: its name, and MPI's message.
#[derive(Debug)]
pub(crate) struct Failure(pub &'static str, pub String);

/// An MPI library with handles of type `H`. Its calls must be made by one thread at a time. (Those that the
/// program makes itself are no calls of this.)
pub(crate) struct Library<H> {
    functions: Functions<H>,
    constants: Constants<H>,
    interface: Interface,
}

/// A library of either width of handles.
pub(crate) enum AnyLibrary {
    Wide(Library<Wide>),
    Narrow(Library<Narrow>),
}

impl AnyLibrary {
    /// The functions of a library with this interface.
    ///
    /// # Errors
    /// With the name of something that the library does not have.
    pub fn of(loaded: &Loaded, interface: Interface) -> Result<Self, &'static str> {
        let wide = match interface {
            Interface::OpenMpi => {
                Constants::of_open_mpi(|name| loaded.symbol(name).map(|symbol| symbol.addr()))?
            }
            Interface::Mpi5 => Constants::MPI_5,
            Interface::Mpich => {
                // SAFETY: the handles of this interface are ints.
                let functions = unsafe { Functions::load(loaded)? };
                return Ok(Self::Narrow(Library { functions, constants: Constants::MPICH, interface }));
            }
        };
        // SAFETY: the handles of both these interfaces are pointers.
        let functions = unsafe { Functions::load(loaded)? };
        Ok(Self::Wide(Library { functions, constants: wide, interface }))
    }
}

/// A request, and the message that it reads or writes. If it is dropped while the request is under way, the
/// memory of the message is never freed.
pub(crate) struct Flight<H: Handle, T = u8> {
    request: Request<H>,
    null: Request<H>,
    message: Vec<T>,
}

impl<H: Handle, T> Flight<H, T> {
    /// The message, after the end of the request.
    ///
    /// # Panics
    /// If the request is under way.
    pub fn into_message(mut self) -> Vec<T> {
        assert!(self.request == self.null, "the request is over");
        mem::take(&mut self.message)
    }
}

impl<H: Handle, T> Drop for Flight<H, T> {
    fn drop(&mut self) {
        if self.request != self.null {
            mem::forget(mem::take(&mut self.message));
        }
    }
}

/// The rows of a layout, wherever they are.
pub(crate) type Shape = (usize, [usize; 2], [usize; 2]);

pub(crate) fn shape(layout: &Layout) -> Shape {
    (layout.row(), layout.counts(), layout.strides())
}

/// A type of MPI for all layouts of one shape.
pub(crate) struct Vector<H> {
    datatype: Datatype<H>,
    shape: Shape,
}

/// Memory that `test_some` uses again.
pub(crate) struct Scratch<H> {
    requests: Vec<Request<H>>,
    over: Vec<c_int>,
}

impl<H> Default for Scratch<H> {
    fn default() -> Self {
        Self { requests: Vec::new(), over: Vec::new() }
    }
}

/// One end of a message or transfer.
#[derive(Clone, Copy)]
pub(crate) struct Peer<H> {
    pub comm: Comm<H>,
    pub node: c_int,
    pub tag: c_int,
}

/// Calls a function and turns its code into a `Result`.
macro_rules! call {
    ($library:expr, $function:ident($($argument:expr),*)) => {{
        let library: &Library<_> = $library;
        // SAFETY: the arguments are valid for this function: pointers to places that outlive the call, or to
        // memory that stays as long as the request, handles of this library that are not freed, and numbers
        // in range. MPI is initialised and not finalised, or the function may be called at any time;
        // `Library` is used by one thread at a time.
        let code = unsafe { (library.functions.$function)($($argument),*) };
        library.check(stringify!($function), code)
    }};
}

impl<H: Handle> Library<H> {
    fn check(&self, function: &'static str, code: c_int) -> Result<(), Failure> {
        if code == 0 {
            return Ok(());
        }
        let message = text(|buffer, length| {
            // SAFETY: the buffer has room for the longest string.
            unsafe { (self.functions.error_string)(code, buffer, length) }
        });
        Err(Failure(function, message.unwrap_or_else(|| format!("error {code}"))))
    }

    fn flag(&self, write: impl FnOnce(*mut c_int) -> Result<(), Failure>) -> Result<c_int, Failure> {
        let mut value = 0;
        write(&mut value)?;
        Ok(value)
    }

    /// Whether the program has initialised MPI.
    pub fn is_initialized(&self) -> Result<bool, Failure> {
        Ok(self.flag(|value| call!(self, initialized(value)))? != 0)
    }

    /// Initialises MPI, for calls by several threads, or by one at a time; the answer is the level of
    /// threads.
    pub fn initialize(&self, several: bool) -> Result<c_int, Failure> {
        let level = if several { self.constants.multiple } else { self.constants.serialized };
        self.flag(|value| call!(self, init_thread(ptr::null_mut(), ptr::null_mut(), level, value)))
    }

    /// The level of threads that MPI was initialised with.
    pub fn threads(&self) -> Result<c_int, Failure> {
        self.flag(|value| call!(self, query_thread(value)))
    }

    /// Finalises MPI, unless the program has done so.
    pub fn finalize(&self) -> Result<(), Failure> {
        if self.flag(|value| call!(self, finalized(value)))? != 0 {
            return Ok(());
        }
        call!(self, finalize())
    }

    /// A communicator of all processes, for this crate alone, whose errors are returned.
    pub fn communicator(&self) -> Result<Comm<H>, Failure> {
        let mut comm = self.constants.world;
        call!(self, comm_dup(self.constants.world, &mut comm))?;
        call!(self, comm_set_errhandler(comm, self.constants.errors_return))?;
        Ok(comm)
    }

    /// Begins to make a communicator for the program, whose errors end all processes, as is the rule in MPI.
    /// All processes must begin this in the same order.
    pub fn duplicate(&self, comm: Comm<H>) -> Result<Flight<H, Comm<H>>, Failure> {
        let mut flight = self.flight(vec![comm]);
        call!(self, comm_idup(comm, flight.message.as_mut_ptr(), &mut flight.request))?;
        Ok(flight)
    }

    /// The communicator, when its request is over.
    ///
    /// # Panics
    /// If the request is under way.
    pub fn duplicated(&self, flight: Flight<H, Comm<H>>) -> Result<Comm<H>, Failure> {
        let comm = flight.into_message()[0];
        call!(self, comm_set_errhandler(comm, self.constants.errors_are_fatal))?;
        Ok(comm)
    }

    /// The handle of a communicator, for the program.
    pub fn for_program(&self, comm: Comm<H>) -> MpiComm {
        comm.0.communicator(self.interface)
    }

    /// Frees a communicator that nothing uses any more. All processes must do so in the same order.
    pub fn free_communicator(&self, mut comm: Comm<H>) -> Result<(), Failure> {
        // What the program has attached to it may fail, which must not end all processes.
        call!(self, comm_set_errhandler(comm, self.constants.errors_return))?;
        call!(self, comm_free(&mut comm))
    }

    /// The number of this process in the communicator, and of all.
    pub fn place(&self, comm: Comm<H>) -> Result<(c_int, c_int), Failure> {
        let rank = self.flag(|value| call!(self, comm_rank(comm, value)))?;
        Ok((rank, self.flag(|value| call!(self, comm_size(comm, value)))?))
    }

    /// Whether a level of threads permits calls from several threads, one after the other.
    pub fn is_serialized(&self, level: c_int) -> bool {
        level >= self.constants.serialized
    }

    /// Whether a level of threads permits calls from several threads at the same time.
    pub fn is_multiple(&self, level: c_int) -> bool {
        level >= self.constants.multiple
    }

    /// The node that stands for all.
    pub fn any(&self) -> c_int {
        self.constants.any_source
    }

    /// The largest tag.
    pub fn largest_tag(&self) -> Result<c_int, Failure> {
        let mut tag: *const c_int = ptr::null();
        let place: *mut *const c_int = &mut tag;
        let key = self.constants.tag_ub;
        let flag =
            self.flag(|value| call!(self, comm_get_attr(self.constants.world, key, place.cast(), value)))?;
        if flag == 0 || tag.is_null() {
            return Ok(32_767);
        }
        // SAFETY: the attribute is a pointer to an int that MPI keeps.
        Ok(unsafe { *tag })
    }

    /// The type of all layouts with these rows.
    pub fn vector(&self, layout: &Layout) -> Result<Vector<H>, Failure> {
        let [rows, planes] = layout.counts().map(|count| count as c_int);
        let [row_stride, plane_stride] = layout.strides().map(|stride| stride as Aint);
        let byte = self.constants.byte;
        let mut vector = byte;
        call!(self, type_create_hvector(rows, layout.row() as c_int, row_stride, byte, &mut vector))?;
        if planes > 1 {
            let mut plane = vector;
            vector = byte;
            call!(self, type_create_hvector(planes, 1, plane_stride, plane, &mut vector))?;
            call!(self, type_free(&mut plane))?;
        }
        call!(self, type_commit(&mut vector))?;
        Ok(Vector { datatype: vector, shape: shape(layout) })
    }

    /// Frees a type; requests that use it go on.
    pub fn free(&self, mut vector: Vector<H>) -> Result<(), Failure> {
        call!(self, type_free(&mut vector.datatype))
    }

    /// Sends a message.
    pub fn send(&self, to: Peer<H>, message: Vec<u8>) -> Result<Flight<H>, Failure> {
        let (byte, mut flight) = (self.constants.byte, self.flight(message));
        let (start, len) = (flight.message.as_ptr().cast(), flight.message.len() as c_int);
        call!(self, isend(start, len, byte, to.node, to.tag, to.comm, &mut flight.request))?;
        Ok(flight)
    }

    /// Receives a message that is at most as long as this one.
    pub fn receive(&self, from: Peer<H>, message: Vec<u8>) -> Result<Flight<H>, Failure> {
        let (byte, mut flight) = (self.constants.byte, self.flight(message));
        let (start, len) = (flight.message.as_mut_ptr().cast(), flight.message.len() as c_int);
        call!(self, irecv(start, len, byte, from.node, from.tag, from.comm, &mut flight.request))?;
        Ok(flight)
    }

    /// Sends bytes from their place. The request is over when they have been received, or are on the way to
    /// their place.
    ///
    /// # Panics
    /// If the memory does not have them.
    pub fn put(
        &self,
        to: Peer<H>,
        memory: &Memory,
        layout: &Layout,
        vector: Option<&Vector<H>>,
    ) -> Result<Flight<H>, Failure> {
        assert!(memory.holds(layout), "{layout:?} is outside of the memory");
        let (count, datatype) = self.count(layout, vector);
        let mut flight = self.flight(Vec::new());
        let start = memory.address(layout).cast();
        call!(self, issend(start, count, datatype, to.node, to.tag, to.comm, &mut flight.request))?;
        Ok(flight)
    }

    /// Receives bytes into their place.
    ///
    /// # Panics
    /// If the memory does not have them.
    pub fn get(
        &self,
        from: Peer<H>,
        memory: &MemoryMut,
        layout: &Layout,
        vector: Option<&Vector<H>>,
    ) -> Result<Flight<H>, Failure> {
        assert!(memory.holds(layout), "{layout:?} is outside of the memory");
        let (count, datatype) = self.count(layout, vector);
        let mut flight = self.flight(Vec::new());
        let start = memory.address(layout).cast();
        call!(self, irecv(start, count, datatype, from.node, from.tag, from.comm, &mut flight.request))?;
        Ok(flight)
    }

    /// The number of elements of a layout, with or without a type of its own.
    fn count(&self, layout: &Layout, vector: Option<&Vector<H>>) -> (c_int, Datatype<H>) {
        match vector {
            Some(vector) => {
                assert_eq!(vector.shape, shape(layout), "a type is that of the layout");
                (1, vector.datatype)
            }
            None => {
                assert!(layout.is_contiguous(), "rows need a type");
                (layout.row() as c_int, self.constants.byte)
            }
        }
    }

    fn ignore(&self) -> *mut Status {
        ptr::without_provenance_mut(self.constants.ignore)
    }

    fn flight<T>(&self, message: Vec<T>) -> Flight<H, T> {
        let null = self.constants.request_null;
        Flight { request: null, null, message }
    }

    /// Whether the request is over.
    pub fn test<T>(&self, flight: &mut Flight<H, T>) -> Result<bool, Failure> {
        let (request, ignore) = (&mut flight.request, self.ignore());
        Ok(self.flag(|value| call!(self, test(request, value, ignore)))? != 0)
    }

    /// The requests that are over, by their places.
    pub fn test_some<'s, P>(
        &self,
        flights: &mut [(P, Flight<H>)],
        scratch: &'s mut Scratch<H>,
    ) -> Result<&'s mut [c_int], Failure> {
        let Scratch { requests, over } = scratch;
        requests.clear();
        requests.extend(flights.iter().map(|(_, flight)| flight.request));
        over.resize(requests.len(), 0);
        let (count, ignore) = (requests.len() as c_int, self.ignore());
        let some = self.flag(|value| {
            call!(self, testsome(count, requests.as_mut_ptr(), value, over.as_mut_ptr(), ignore))
        });
        // MPI has set what is over to null.
        for ((_, flight), request) in flights.iter_mut().zip(&*requests) {
            flight.request = *request;
        }
        // A negative number stands for no request at all.
        Ok(&mut over[..usize::try_from(some?).unwrap_or(0)])
    }

    /// Every process says a number to every other one. This waits for all processes.
    ///
    /// # Panics
    /// If there are not as many numbers as processes.
    pub fn exchange(&self, comm: Comm<H>, numbers: &[u64]) -> Result<Vec<u64>, Failure> {
        let (_, size) = self.place(comm)?;
        assert_eq!(numbers.len(), size as usize, "a number for each process");
        let mut answers = vec![0_u64; numbers.len()];
        let (byte, bytes) = (self.constants.byte, size_of::<u64>() as c_int);
        let (from, to) = (numbers.as_ptr().cast(), answers.as_mut_ptr().cast());
        call!(self, alltoall(from, bytes, byte, to, bytes, byte, comm))?;
        Ok(answers)
    }

    /// Gives up a receive, if no message has come for it, and waits for it otherwise.
    pub fn cancel(&self, flight: &mut Flight<H>) -> Result<(), Failure> {
        call!(self, cancel(&mut flight.request))?;
        call!(self, wait(&mut flight.request, self.ignore()))
    }

    /// Gives up a receive, if no message has come for it. The answer is whether it is over.
    pub fn give_up(&self, flight: &mut Flight<H>) -> Result<bool, Failure> {
        call!(self, cancel(&mut flight.request))?;
        self.test(flight)
    }

    /// Ends all processes.
    pub fn abort(&self, comm: Comm<H>) -> ! {
        let _ = call!(self, abort(comm, 1));
        std::process::abort()
    }
}
