//! The functions that C calls.
//!
//! The documentation of each function is for callers in C and goes into the header word for word. A call is
//! sound if the caller keeps what this documentation requires; `SAFETY` comments below call that the caller's
//! contract.
//!
//! Callbacks are `extern "C-unwind"`: a callback in Rust may panic, and the panic becomes a status. The
//! library cannot catch an exception of another language, which ends the program.

#![expect(non_camel_case_types, reason = "the names that C sees")]
#![expect(clippy::missing_safety_doc, reason = "the documentation is for C, where every function is unsafe")]

use crate::{
    attach,
    error::{self, Failure},
};
use anabranch_par::{Consecutive, JobHandle, ThreadPool, participant, prelude::*, scratch};
use std::{
    ffi::{c_char, c_int, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    process, ptr,
};

use anabranch_status::*;

/// The outcome of a call. After a failure, `anabranch_last_error` has a message.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum anabranch_status {
    /// The call succeeded.
    ANABRANCH_OK = 0,
    /// An argument has a value that is not allowed. Nothing was done.
    ANABRANCH_INVALID_ARGUMENT = 1,
    /// A callback written in Rust panicked, or the library itself did.
    ANABRANCH_PANIC = 2,
    /// This process was forked after the pool was made, so the pool's threads are in the parent process.
    /// Nothing was done.
    ANABRANCH_FORKED = 3,
    /// The call is not allowed inside a loop (or a job). Nothing was done.
    ANABRANCH_STILL_INSIDE = 4,
    /// The calling thread is not attached. Nothing was done.
    ANABRANCH_NOT_ATTACHED = 5,
    /// A callback returned a value other than 0, and the rest of the loop was skipped.
    ANABRANCH_CANCELLED = 6,
    /// An environment variable has a value that is not allowed. Nothing was done.
    ANABRANCH_ENVIRONMENT = 7,
    /// The operating system refused a resource, a thread for instance. Nothing was done.
    ANABRANCH_SYSTEM = 8,
}

/// A pool of threads. Any number of threads may use one pool at the same time.
#[derive(Debug)]
pub struct anabranch_pool(ThreadPool);

/// The handle of a job, to wait for it.
#[derive(Debug)]
pub struct anabranch_job {
    handle: JobHandle<()>,
    process: u32,
}

/// A callback, with the program's pointer that the library passes through to it.
///
/// The pointer goes to other threads: see [`Data`].
type Callback = unsafe extern "C-unwind" fn(data: *mut c_void);

/// The `data` of a callback.
#[derive(Clone, Copy)]
struct Data(*mut c_void);

// SAFETY: this library never dereferences the pointer. By the documentation of each function, the caller
// guarantees that the callback may use the pointer on other threads, and on several at a time where the
// function says so.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl Data {
    /// The pointer. (A closure that names the field captures the bare pointer, which is not `Send`.)
    fn get(self) -> *mut c_void {
        self.0
    }
}

/// Runs the body of a function. Returns its status; a panic becomes one, too.
fn entry(f: impl FnOnce() -> Result<(), Failure>) -> anabranch_status {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => ANABRANCH_OK,
        Ok(Err(failure)) => failure.record(),
        Err(payload) => Failure::caught(payload).record(),
    }
}

/// The pool behind an argument of `function`.
///
/// # Safety
/// The pointer is null, or comes from [`anabranch_pool_new`] and is not freed as long as the result is used.
unsafe fn pool_of<'a>(pool: *const anabranch_pool, function: &str) -> Result<&'a ThreadPool, Failure> {
    // SAFETY: see above.
    match unsafe { pool.as_ref() } {
        Some(pool) => Ok(&pool.0),
        None => Err(Failure::null(function, "pool")),
    }
}

/// Makes a pool whose loops run on `threads` threads: the calling thread, and `threads - 1` workers that
/// start now.
///
/// With 0, the environment variable ANABRANCH_NUM_THREADS gives the number of threads; without that variable,
/// it is the number of processors that this process may use. ANABRANCH_PIN and ANABRANCH_WAIT_POLICY apply,
/// too.
///
/// Returns NULL on failure: `anabranch_last_status` and `anabranch_last_error` say why. The pool belongs to
/// the caller, who frees it with `anabranch_pool_free`.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_pool_new(threads: usize) -> *mut anabranch_pool {
    let mut made = ptr::null_mut();
    entry(|| {
        let builder = ThreadPool::builder();
        let builder = if threads == 0 { builder } else { builder.threads(threads) };
        made = Box::into_raw(Box::new(anabranch_pool(builder.build()?)));
        Ok(())
    });
    made
}

/// Runs the pending jobs of the pool, ends its threads, waits for them and frees the pool.
///
/// No other call with this pool may be in progress on any thread, and none may follow. Inside a loop the call
/// fails (ANABRANCH_STILL_INSIDE), and the pool stays usable. NULL is allowed. A process that was forked
/// after the pool was made may free it too; there the call waits for no thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_pool_free(pool: *mut anabranch_pool) -> anabranch_status {
    entry(|| {
        if participant().is_some() {
            let message = "a pool cannot be freed inside a loop; free it when that has ended";
            return Err(Failure::new(ANABRANCH_STILL_INSIDE, message));
        }
        if !pool.is_null() {
            // SAFETY: by the caller's contract the pointer is from `anabranch_pool_new`, which made a box,
            // and was not freed before.
            drop(unsafe { Box::from_raw(pool) });
        }
        Ok(())
    })
}

/// The number of threads of a loop that the calling thread runs on this pool; 0 if `pool` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_pool_threads(pool: *const anabranch_pool) -> usize {
    let mut threads = 0;
    entry(|| {
        // SAFETY: the caller's contract.
        threads = unsafe { pool_of(pool, "anabranch_pool_threads") }?.threads();
        Ok(())
    });
    threads
}

/// The error message of the last call of this thread that failed, in English (UTF-8, less than 1024 bytes);
/// the empty string if no call has failed. Never NULL.
///
/// The string belongs to the library. This thread may read it until its next call that fails, or until
/// `anabranch_clear_error`.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_last_error() -> *const c_char {
    error::last_message()
}

/// The status of the last call of this thread that failed; ANABRANCH_OK if none has.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_last_status() -> anabranch_status {
    error::last_status()
}

/// The value that a callback returned to make the last call of this thread fail (ANABRANCH_CANCELLED); 0 if
/// that call failed for another reason, or if none has failed.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_last_code() -> c_int {
    error::last_code()
}

/// Clears the last error of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_clear_error() {
    error::clear();
}

/// Registers the calling thread with the runtime, until it detaches or ends.
///
/// A program never needs this: any thread may call any function, and is registered at its first use. Call
/// this to register a thread before its first use. Attachments are counted: the thread leaves with the last
/// `anabranch_detach`.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_attach() -> anabranch_status {
    entry(|| {
        attach::attach();
        Ok(())
    })
}

/// Ends one attachment of the calling thread. When the last attachment ends, other threads may reuse the
/// memory that the runtime keeps for this one. The thread may still call any function, and may attach again.
///
/// Fails if the thread is not attached (ANABRANCH_NOT_ATTACHED). Also fails if this is the last attachment
/// and the thread is inside a loop or a job (ANABRANCH_STILL_INSIDE); the thread stays attached then. A
/// thread that ends need not detach.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_detach() -> anabranch_status {
    entry(attach::detach)
}

/// Calls `f(data)` on the calling thread, which may be any thread, with `pool` as its current pool: for
/// callbacks that enter the runtime on threads that the runtime did not start. Takes no lock and allocates no
/// memory.
///
/// Fails if `pool` or `f` is NULL, and in a process that was forked after the pool was made. Then `f` is not
/// called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_call(
    pool: *const anabranch_pool,
    f: Option<unsafe extern "C-unwind" fn(data: *mut c_void)>,
    data: *mut c_void,
) -> anabranch_status {
    // SAFETY: null, or a pool that lives as long as this call, by the caller's contract.
    let (Some(pool), Some(f)) = (unsafe { pool.as_ref() }, f) else {
        return call_without(if f.is_none() { "f" } else { "pool" });
    };
    if let Err(forked) = pool.0.check_fork() {
        return fail(forked);
    }
    // SAFETY: `f` may be called with `data` on this thread, by the caller's contract.
    match pool.0.call(|| unsafe { f(data) }) {
        Ok(()) => ANABRANCH_OK,
        Err(panic) => fail(panic),
    }
}

#[cold]
#[inline(never)]
fn call_without(argument: &str) -> anabranch_status {
    Failure::null("anabranch_call", argument).record()
}

/// The rare path of a call, kept out of line.
#[cold]
#[inline(never)]
fn fail(why: impl Into<Failure>) -> anabranch_status {
    why.into().record()
}

/// Submits a job: `f(data)` is called some time later, on a worker of the pool or by `anabranch_job_wait`.
/// Jobs begin in about the order in which they were submitted.
///
/// If `job` is not NULL, `*job` is set to a handle, which belongs to the caller: end it with
/// `anabranch_job_wait` or `anabranch_job_free`. If `job` is NULL, there is no handle to wait with. A pool of
/// one thread has no workers, so the threads that use it run its jobs. The calling thread does so before this
/// returns, or when it leaves the loop or job that it is in.
///
/// The data behind `data` must live until the job has ended, and `f` must be allowed to use it on another
/// thread. Fails if `pool` or `f` is NULL, and in a process that was forked after the pool was made; `*job`
/// is NULL then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_submit(
    pool: *const anabranch_pool,
    f: Option<unsafe extern "C-unwind" fn(data: *mut c_void)>,
    data: *mut c_void,
    job: *mut *mut anabranch_job,
) -> anabranch_status {
    // SAFETY: null, or the caller's variable.
    let mut handle = unsafe { job.as_mut() };
    if let Some(handle) = &mut handle {
        **handle = ptr::null_mut();
    }
    entry(|| {
        // SAFETY: the caller's contract.
        let pool = unsafe { pool_of(pool, "anabranch_submit") }?;
        let f: Callback = f.ok_or_else(|| Failure::null("anabranch_submit", "f"))?;
        pool.check_fork()?;
        let data = Data(data);
        // SAFETY: `f` may be called with `data`, once, on any thread, by the caller's contract.
        let spawned = pool.spawn(move || unsafe { f(data.get()) });
        if let Some(handle) = handle {
            *handle = Box::into_raw(Box::new(anabranch_job { handle: spawned, process: process::id() }));
        }
        Ok(())
    })
}

/// A forked child has no thread that runs a job of its parent.
fn check_process(job: &anabranch_job) -> Result<(), Failure> {
    if process::id() == job.process {
        return Ok(());
    }
    let message = "the job was submitted before this process was forked: it is run in the parent process";
    Err(Failure::new(ANABRANCH_FORKED, message))
}

/// Waits until the job has ended, and frees the handle. If no thread has begun the job, the calling thread
/// runs it now. While it waits, the thread runs nothing else.
///
/// Fails if `job` is NULL, if the job panicked, and in a process that was forked after the job was submitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_job_wait(job: *mut anabranch_job) -> anabranch_status {
    entry(|| {
        if job.is_null() {
            return Err(Failure::null("anabranch_job_wait", "job"));
        }
        // SAFETY: by the caller's contract the pointer is from `anabranch_submit`, which made a box, and was
        // not ended before.
        let job = unsafe { Box::from_raw(job) };
        check_process(&job)?;
        job.handle.join().map_err(|panic| Failure::caught(panic.into_payload()))
    })
}

/// Whether the job has ended, so that `anabranch_job_wait` returns at once. Returns false, and sets the
/// error, if `job` is NULL and in a process that was forked after the job was submitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_job_is_done(job: *const anabranch_job) -> bool {
    let mut done = false;
    entry(|| {
        // SAFETY: null, or from `anabranch_submit` and not ended, by the caller's contract.
        let job = unsafe { job.as_ref() }.ok_or_else(|| Failure::null("anabranch_job_is_done", "job"))?;
        check_process(job)?;
        done = job.handle.is_done();
        Ok(())
    });
    done
}

/// Frees the handle without waiting. The job still runs. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_job_free(job: *mut anabranch_job) {
    if !job.is_null() {
        // SAFETY: as in `anabranch_job_wait`.
        drop(unsafe { Box::from_raw(job) });
    }
}

/// Calls `body(b, e, data)` for consecutive ranges [b, e) that together are [begin, end), on the threads of
/// the pool and on the calling thread, several at a time. Returns when all calls have returned.
///
/// Every range has `chunk` elements, the last one perhaps fewer; with 0 there are up to 256 ranges of the
/// same size. So the ranges depend on the arguments alone, never on the number of threads. If `begin` equals
/// `end`, `body` is not called.
///
/// If a call returns a value other than 0, later ranges that have not begun are skipped, and all earlier ones
/// are done. The result is ANABRANCH_CANCELLED then, and `anabranch_last_code` is the value that the call for
/// the lowest such range returned.
///
/// `body` must be allowed to use `data` on several threads at once. It may call any function, this one too.
/// While a thread waits here, it works on this loop and nothing else. Fails if `pool` or `body` is NULL, if
/// `begin` is greater than `end`, and in a process that was forked after the pool was made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_parallel_for(
    pool: *const anabranch_pool,
    begin: usize,
    end: usize,
    chunk: usize,
    body: Option<unsafe extern "C-unwind" fn(begin: usize, end: usize, data: *mut c_void) -> c_int>,
    data: *mut c_void,
) -> anabranch_status {
    entry(|| {
        // SAFETY: the caller's contract.
        let pool = unsafe { pool_of(pool, "anabranch_parallel_for") }?;
        let body = body.ok_or_else(|| Failure::null("anabranch_parallel_for", "body"))?;
        let Some(len) = end.checked_sub(begin) else {
            let message = format!("anabranch_parallel_for: begin is {begin} and end is {end}, which is less");
            return Err(Failure::new(ANABRANCH_INVALID_ARGUMENT, message));
        };
        let size = if chunk == 0 { len.div_ceil(AUTOMATIC_RANGES).max(1) } else { chunk };
        let (ranges, data) = (Consecutive::by_size(len, size), Data(data));
        let call = |item| {
            let range = ranges.chunk(item);
            // SAFETY: `body` may be called with `data` on several threads, by the caller's contract.
            match unsafe { body(begin + range.start, begin + range.end, data.get()) } {
                0 => Ok(()),
                code => Err(code),
            }
        };
        let items = (0..ranges.chunks()).par().on(pool);
        // A thread takes ranges of a size that the program chose one by one, and automatic ranges several at
        // a time.
        let result = items.chunking(chunk == 0).try_for_each(call);
        result.map_err(|error| Failure::of_loop(error, begin, &ranges))
    })
}

/// The maximum number of ranges of a loop whose program does not choose their size.
const AUTOMATIC_RANGES: usize = 256;

/// The calling thread's number among the threads that work on the innermost loop around this call: from 0 to
/// `anabranch_participant_count` - 1. No two of them have the same number at the same time. 0 outside of all
/// loops.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_participant_index() -> usize {
    participant().map_or(0, |me| me.index())
}

/// The number of threads that may work on the innermost loop around this call. 1 outside of all loops.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_participant_count() -> usize {
    participant().map_or(1, |me| me.count())
}

/// Calls `f(memory, data)` on the calling thread with `bytes` bytes of memory, which belong to `f` until it
/// returns. Their address is a multiple of 64, and their contents are unspecified.
///
/// The memory stays with the thread: the next call for as many bytes allocates nothing. Calls may be nested.
/// If the system has no more memory, the program ends. Fails if `f` is NULL or `bytes` is more than
/// PTRDIFF_MAX - 64.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_scratch(
    bytes: usize,
    f: Option<unsafe extern "C-unwind" fn(memory: *mut c_void, data: *mut c_void)>,
    data: *mut c_void,
) -> anabranch_status {
    entry(|| {
        let f = f.ok_or_else(|| Failure::null("anabranch_scratch", "f"))?;
        if bytes > isize::MAX as usize - 64 {
            let message = format!("anabranch_scratch: {bytes} bytes are more than an allocation can have");
            return Err(Failure::new(ANABRANCH_INVALID_ARGUMENT, message));
        }
        scratch::scope(|scope| {
            let memory = scope.slice::<u8>(bytes).as_mut_ptr().cast();
            // SAFETY: `f` may be called with `data` on this thread, by the caller's contract. Only the
            // callback uses the memory until it returns.
            unsafe { f(memory, data) }
        });
        Ok(())
    })
}
