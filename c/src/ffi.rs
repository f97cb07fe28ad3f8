//! The functions that C calls.
//!
//! The documentation of each is for those who call it from C, and goes into the header word for word; what it asks of its
//! caller is what makes the call sound.
//!
//! Callbacks are `extern "C-unwind"`: a callback in Rust may panic, which becomes a status. An exception of another language
//! cannot be caught and ends the program.

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

/// What a call has come to. What went wrong is said by `anabranch_last_error`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum anabranch_status {
    /// The call did what it says.
    ANABRANCH_OK = 0,
    /// An argument must not have this value; nothing was done.
    ANABRANCH_INVALID_ARGUMENT = 1,
    /// A callback that is written in Rust panicked, or the library itself did.
    ANABRANCH_PANIC = 2,
    /// This process was forked after the pool was made: its threads are in the parent process. Nothing was done.
    ANABRANCH_FORKED = 3,
    /// This cannot be done inside a loop (or a job). Nothing was done.
    ANABRANCH_STILL_INSIDE = 4,
    /// The calling thread is not attached. Nothing was done.
    ANABRANCH_NOT_ATTACHED = 5,
    /// A callback returned a value other than 0, and the rest of the loop was left out.
    ANABRANCH_CANCELLED = 6,
    /// An environment variable has a value that it must not have. Nothing was done.
    ANABRANCH_ENVIRONMENT = 7,
    /// The operating system refused something, a thread for instance. Nothing was done.
    ANABRANCH_SYSTEM = 8,
}

/// A team of threads. Any number of threads may use one pool at the same time.
#[derive(Debug)]
pub struct anabranch_pool(ThreadPool);

/// A job that somebody may wait for.
#[derive(Debug)]
pub struct anabranch_job {
    handle: JobHandle<()>,
    process: u32,
}

/// What a callback gets to see of the program: a pointer that is passed through.
///
/// It goes to other threads: see [`Data`].
type Callback = unsafe extern "C-unwind" fn(data: *mut c_void);

/// The `data` of a callback.
#[derive(Clone, Copy)]
struct Data(*mut c_void);

// SAFETY: this library does not look at what is behind the pointer. Who passes it vouches that the callback may use it on
// other threads, and on several at a time where the function says so.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl Data {
    /// The pointer. (A closure that named the field would capture that alone.)
    fn get(self) -> *mut c_void {
        self.0
    }
}

/// Runs what a function does; no panic goes further.
fn entry(f: impl FnOnce() -> Result<(), Failure>) -> anabranch_status {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => ANABRANCH_OK,
        Ok(Err(failure)) => failure.tell(),
        Err(payload) => Failure::caught(payload).tell(),
    }
}

/// The pool behind an argument of `function`.
///
/// # Safety
/// The pointer is null, or comes from [`anabranch_pool_new`] and is not freed as long as the result is used.
unsafe fn pool_of<'a>(pool: *const anabranch_pool, function: &str) -> Result<&'a ThreadPool, Failure> {
    // SAFETY: said above.
    match unsafe { pool.as_ref() } {
        Some(pool) => Ok(&pool.0),
        None => Err(Failure::null(function, "pool")),
    }
}

/// Makes a pool whose loops run on `threads` threads: the one that calls, and `threads - 1` workers that are started now.
///
/// With 0 it has as many as the environment variable ANABRANCH_NUM_THREADS says, or else as this process may use
/// processors. ANABRANCH_PIN and ANABRANCH_WAIT_POLICY are heeded too.
///
/// Returns NULL where that fails: `anabranch_last_status` and `anabranch_last_error` say why. The pool belongs to the caller,
/// who frees it with `anabranch_pool_free`.
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

/// Runs the jobs of the pool that are still waiting, ends its threads, waits for them and frees the pool.
///
/// No other call with this pool may be in progress on any thread, and none may follow. Inside a loop this is refused
/// (ANABRANCH_STILL_INSIDE), and the pool lives on. NULL is allowed. A process that was forked after the pool was made may
/// free it too, and waits for nobody.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_pool_free(pool: *mut anabranch_pool) -> anabranch_status {
    entry(|| {
        if participant().is_some() {
            let message = "a pool cannot be freed inside a loop; free it when that has ended";
            return Err(Failure::new(ANABRANCH_STILL_INSIDE, message));
        }
        if !pool.is_null() {
            // SAFETY: from `anabranch_pool_new`, which made a box, and not freed before: both is the caller's word.
            drop(unsafe { Box::from_raw(pool) });
        }
        Ok(())
    })
}

/// How many threads a loop has when the calling thread runs it on this pool; 0 where `pool` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_pool_threads(pool: *const anabranch_pool) -> usize {
    let mut threads = 0;
    entry(|| {
        // SAFETY: the caller's word.
        threads = unsafe { pool_of(pool, "anabranch_pool_threads") }?.threads();
        Ok(())
    });
    threads
}

/// What went wrong in the last call of this thread that failed, in English (UTF-8, less than 1024 bytes); the empty string
/// where none has. Never NULL.
///
/// The string belongs to the library. It may be read by this thread until its next call that fails, or until
/// `anabranch_clear_error`.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_last_error() -> *const c_char {
    error::last_message()
}

/// The status of the last call of this thread that failed; ANABRANCH_OK where none has.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_last_status() -> anabranch_status {
    error::last_status()
}

/// What the callback returned that made the last call of this thread fail (ANABRANCH_CANCELLED); 0 where it failed for
/// another reason, or none has failed.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_last_code() -> c_int {
    error::last_code()
}

/// Forgets what went wrong in calls of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_clear_error() {
    error::clear();
}

/// Makes the calling thread a member of the runtime, until it detaches or ends.
///
/// Nobody needs this: every thread may call everything, and joins by itself when it first needs to. It is for threads that
/// shall be ready before their first call. Attachments count: the thread leaves with the last `anabranch_detach`.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_attach() -> anabranch_status {
    entry(|| {
        attach::attach();
        Ok(())
    })
}

/// Ends one attachment of the calling thread. With the last one, what the runtime keeps for the thread is lent to others; the
/// thread may go on to call everything, and may attach again.
///
/// Fails where the thread is not attached (ANABRANCH_NOT_ATTACHED), and where this is the last attachment and the thread is
/// inside a loop or a job (ANABRANCH_STILL_INSIDE): then it stays attached. A thread that ends need not detach.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_detach() -> anabranch_status {
    entry(attach::detach)
}

/// Calls `f(data)` on the calling thread, which may be any, with `pool` as its own: for callbacks by which a program comes
/// into the runtime from threads that it did not make. Takes no lock and allocates nothing.
///
/// Fails where `pool` or `f` is NULL, and in a process that was forked after the pool was made: `f` is not called then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_call(
    pool: *const anabranch_pool,
    f: Option<unsafe extern "C-unwind" fn(data: *mut c_void)>,
    data: *mut c_void,
) -> anabranch_status {
    // SAFETY: null, or a pool that lives as long as this call: the caller's word.
    let (Some(pool), Some(f)) = (unsafe { pool.as_ref() }, f) else {
        return call_without(if f.is_none() { "f" } else { "pool" });
    };
    if let Err(forked) = pool.0.check_fork() {
        return fail(forked);
    }
    // SAFETY: `f` may be called with `data` on this thread: the caller's word.
    match pool.0.call(|| unsafe { f(data) }) {
        Ok(()) => ANABRANCH_OK,
        Err(panic) => fail(panic),
    }
}

#[cold]
#[inline(never)]
fn call_without(argument: &str) -> anabranch_status {
    Failure::null("anabranch_call", argument).tell()
}

/// Keeps what is rare out of the way of a call.
#[cold]
#[inline(never)]
fn fail(why: impl Into<Failure>) -> anabranch_status {
    why.into().tell()
}

/// Hands over a job: `f(data)` is called some time later, on a worker of the pool or by `anabranch_job_wait`. Jobs begin in
/// about the order in which they were submitted.
///
/// Where `job` is not NULL, `*job` is set to a handle, which belongs to the caller: `anabranch_job_wait` or `anabranch_job_free`
/// ends it. With NULL nobody waits for the job. A pool of one thread has no workers: its jobs are run
/// by the threads that use it. The calling one does so before this returns, or when it leaves the loop or job that it is in.
///
/// What `data` points to must live until the job has ended, and `f` must be allowed to use it on another thread.
/// Fails where `pool` or `f` is NULL, and in a process that was forked after the pool was made; `*job` is NULL then.
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
        // SAFETY: the caller's word.
        let pool = unsafe { pool_of(pool, "anabranch_submit") }?;
        let f: Callback = f.ok_or_else(|| Failure::null("anabranch_submit", "f"))?;
        pool.check_fork()?;
        let data = Data(data);
        // SAFETY: `f` may be called with `data`, once, on any thread: the caller's word.
        let spawned = pool.spawn(move || unsafe { f(data.get()) });
        if let Some(handle) = handle {
            *handle = Box::into_raw(Box::new(anabranch_job { handle: spawned, process: process::id() }));
        }
        Ok(())
    })
}

/// In another process than its own, nobody runs a job.
fn check_process(job: &anabranch_job) -> Result<(), Failure> {
    if process::id() == job.process {
        return Ok(());
    }
    let message = "the job was submitted before this process was forked: it is run in the parent process";
    Err(Failure::new(ANABRANCH_FORKED, message))
}

/// Waits until the job has ended, and frees the handle. A job that nobody has begun is run now, by the calling thread; while
/// it waits, the thread runs nothing else.
///
/// Fails where `job` is NULL, where the job panicked, and in a process that was forked after the job was submitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_job_wait(job: *mut anabranch_job) -> anabranch_status {
    entry(|| {
        if job.is_null() {
            return Err(Failure::null("anabranch_job_wait", "job"));
        }
        // SAFETY: from `anabranch_submit`, which made a box, and not ended before: the caller's word.
        let job = unsafe { Box::from_raw(job) };
        check_process(&job)?;
        job.handle.join().map_err(|panic| Failure::caught(panic.into_payload()))
    })
}

/// Whether the job has ended, so that `anabranch_job_wait` returns at once. False, with an error, where `job` is NULL and in a
/// process that was forked after the job was submitted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_job_is_done(job: *const anabranch_job) -> bool {
    let mut done = false;
    entry(|| {
        // SAFETY: null, or from `anabranch_submit` and not ended: the caller's word.
        let job = unsafe { job.as_ref() }.ok_or_else(|| Failure::null("anabranch_job_is_done", "job"))?;
        check_process(job)?;
        done = job.handle.is_done();
        Ok(())
    });
    done
}

/// Frees the handle without waiting: the job is run all the same. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_job_free(job: *mut anabranch_job) {
    if !job.is_null() {
        // SAFETY: as in `anabranch_job_wait`.
        drop(unsafe { Box::from_raw(job) });
    }
}

/// Calls `body(b, e, data)` for consecutive ranges [b, e) that together are [begin, end), on the threads of the pool and on the
/// calling thread, several at a time; returns when all calls have returned.
///
/// Every range has `chunk` elements, the last one perhaps fewer; with 0 there are up to 256 ranges of the same size. So the
/// ranges follow from the arguments alone, never from the number of threads. An empty range calls nothing.
///
/// Where a call returns something other than 0, ranges behind it that have not begun are left out. Those before it are all
/// done. The result is ANABRANCH_CANCELLED then, and `anabranch_last_code` is what the call for the lowest such range returned.
///
/// `body` must be allowed to use `data` on several threads at once. It may call everything, this function too; while a thread
/// waits here, it works on this loop and nothing else.
/// Fails where `pool` or `body` is NULL, where `begin` is greater than `end`, and in a process that was forked after the pool
/// was made.
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
        // SAFETY: the caller's word.
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
            // SAFETY: `body` may be called with `data` on several threads: the caller's word.
            match unsafe { body(begin + range.start, begin + range.end, data.get()) } {
                0 => Ok(()),
                code => Err(code),
            }
        };
        let items = (0..ranges.chunks()).par().on(pool);
        // Ranges of a size that was chosen are dealt out one by one; of the others a thread takes several.
        let result = items.chunking(chunk == 0).try_for_each(call);
        result.map_err(|error| Failure::of_loop(error, begin, &ranges))
    })
}

/// Into how many ranges a loop is cut at most, where the program does not say how large they are.
const AUTOMATIC_RANGES: usize = 256;

/// The calling thread's number among those that work on the innermost loop around this call: from 0 to
/// `anabranch_participant_count` - 1, and no two of them have the same at a time. 0 outside of all loops.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_participant_index() -> usize {
    participant().map_or(0, |me| me.index())
}

/// How many threads may work on the innermost loop around this call. 1 outside of all loops.
#[unsafe(no_mangle)]
pub extern "C" fn anabranch_participant_count() -> usize {
    participant().map_or(1, |me| me.count())
}

/// Calls `f(memory, data)` on the calling thread with `bytes` bytes of memory, which are its own until `f` returns. They begin
/// at a multiple of 64; what is in them is unspecified.
///
/// The memory stays with the thread: the next call for as much allocates nothing. Calls may be nested. Where the system has
/// no more memory, the program ends.
/// Fails where `f` is NULL or `bytes` is more than PTRDIFF_MAX.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn anabranch_scratch(
    bytes: usize,
    f: Option<unsafe extern "C-unwind" fn(memory: *mut c_void, data: *mut c_void)>,
    data: *mut c_void,
) -> anabranch_status {
    entry(|| {
        let f = f.ok_or_else(|| Failure::null("anabranch_scratch", "f"))?;
        if bytes > isize::MAX as usize - 64 {
            let message = format!("anabranch_scratch: {bytes} bytes are more than there can be");
            return Err(Failure::new(ANABRANCH_INVALID_ARGUMENT, message));
        }
        scratch::scope(|scope| {
            let memory = scope.slice::<u8>(bytes).as_mut_ptr().cast();
            // SAFETY: `f` may be called with `data` on this thread: the caller's word. The memory is the callback's alone
            // until it returns.
            unsafe { f(memory, data) }
        });
        Ok(())
    })
}
