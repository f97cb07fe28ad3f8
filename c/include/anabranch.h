/*
 * Anabranch: threads, parallel loops and jobs, for C11 and C++.
 *
 * This file is generated from c/src/ffi.rs. Make changes there.
 *
 * Threads      Any thread may call any function at any time, also inside callbacks, and also a thread that the library
 *              did not start. A thread needs no set-up.
 * Ownership    A pool and the handle of a job belong to the program until it gives them back, once. The library passes
 *              `data` through and never reads it. It must be what the callback expects, on the threads that call it.
 * Callbacks    They return normally: no longjmp, no pthread_exit, no C++ exception may leave them. An exception that
 *              does ends the program.
 * Errors       A function that can fail returns an anabranch_status; the thread's last error has a message. NULL
 *              for a required argument is an error. The library cannot detect wrong and freed pointers.
 * fork         In a forked child, a call with a pool of the parent fails with ANABRANCH_FORKED. Make new pools there.
 */

#ifndef ANABRANCH_H
#define ANABRANCH_H

#include <stdbool.h>
#include <stddef.h>

/**
 * The outcome of a call. After a failure, `anabranch_last_error` has a message.
 */
typedef enum {
  /**
   * The call succeeded.
   */
  ANABRANCH_OK = 0,
  /**
   * An argument has a value that is not allowed. Nothing was done.
   */
  ANABRANCH_INVALID_ARGUMENT = 1,
  /**
   * A callback written in Rust panicked, or the library itself did.
   */
  ANABRANCH_PANIC = 2,
  /**
   * This process was forked after the pool was made, so the pool's threads are in the parent process.
   * Nothing was done.
   */
  ANABRANCH_FORKED = 3,
  /**
   * The call is not allowed inside a loop (or a job). Nothing was done.
   */
  ANABRANCH_STILL_INSIDE = 4,
  /**
   * The calling thread is not attached. Nothing was done.
   */
  ANABRANCH_NOT_ATTACHED = 5,
  /**
   * A callback returned a value other than 0, and the rest of the loop was skipped.
   */
  ANABRANCH_CANCELLED = 6,
  /**
   * An environment variable has a value that is not allowed. Nothing was done.
   */
  ANABRANCH_ENVIRONMENT = 7,
  /**
   * The operating system refused a resource, a thread for instance. Nothing was done.
   */
  ANABRANCH_SYSTEM = 8,
} anabranch_status;

/**
 * The handle of a job, to wait for it.
 */
typedef struct anabranch_job anabranch_job;

/**
 * A pool of threads. Any number of threads may use one pool at the same time.
 */
typedef struct anabranch_pool anabranch_pool;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a pool whose loops run on `threads` threads: the calling thread, and `threads - 1` workers that
 * start now.
 *
 * With 0, the environment variable ANABRANCH_NUM_THREADS gives the number of threads; without that variable,
 * it is the number of processors that this process may use. ANABRANCH_PIN and ANABRANCH_WAIT_POLICY apply,
 * too.
 *
 * Returns NULL on failure: `anabranch_last_status` and `anabranch_last_error` say why. The pool belongs to
 * the caller, who frees it with `anabranch_pool_free`.
 */
anabranch_pool *anabranch_pool_new(size_t threads);

/**
 * Runs the pending jobs of the pool, ends its threads, waits for them and frees the pool.
 *
 * No other call with this pool may be in progress on any thread, and none may follow. Inside a loop the call
 * fails (ANABRANCH_STILL_INSIDE), and the pool stays usable. NULL is allowed. A process that was forked
 * after the pool was made may free it too; there the call waits for no thread.
 */
anabranch_status anabranch_pool_free(anabranch_pool *pool);

/**
 * The number of threads of a loop that the calling thread runs on this pool; 0 if `pool` is NULL.
 */
size_t anabranch_pool_threads(const anabranch_pool *pool);

/**
 * The error message of the last call of this thread that failed, in English (UTF-8, less than 1024 bytes);
 * the empty string if no call has failed. Never NULL.
 *
 * The string belongs to the library. This thread may read it until its next call that fails, or until
 * `anabranch_clear_error`.
 */
const char *anabranch_last_error(void);

/**
 * The status of the last call of this thread that failed; ANABRANCH_OK if none has.
 */
anabranch_status anabranch_last_status(void);

/**
 * The value that a callback returned to make the last call of this thread fail (ANABRANCH_CANCELLED); 0 if
 * that call failed for another reason, or if none has failed.
 */
int anabranch_last_code(void);

/**
 * Clears the last error of this thread.
 */
void anabranch_clear_error(void);

/**
 * Registers the calling thread with the runtime, until it detaches or ends.
 *
 * A program never needs this: any thread may call any function, and is registered at its first use. Call
 * this to register a thread before its first use. Attachments are counted: the thread leaves with the last
 * `anabranch_detach`.
 */
anabranch_status anabranch_attach(void);

/**
 * Ends one attachment of the calling thread. When the last attachment ends, other threads may reuse the
 * memory that the runtime keeps for this one. The thread may still call any function, and may attach again.
 *
 * Fails if the thread is not attached (ANABRANCH_NOT_ATTACHED). Also fails if this is the last attachment
 * and the thread is inside a loop or a job (ANABRANCH_STILL_INSIDE); the thread stays attached then. A
 * thread that ends need not detach.
 */
anabranch_status anabranch_detach(void);

/**
 * Calls `f(data)` on the calling thread, which may be any thread, with `pool` as its current pool: for
 * callbacks that enter the runtime on threads that the runtime did not start. Takes no lock and allocates no
 * memory.
 *
 * Fails if `pool` or `f` is NULL, and in a process that was forked after the pool was made. Then `f` is not
 * called.
 */
anabranch_status anabranch_call(const anabranch_pool *pool, void (*f)(void *data), void *data);

/**
 * Submits a job: `f(data)` is called some time later, on a worker of the pool or by `anabranch_job_wait`.
 * Jobs begin in about the order in which they were submitted.
 *
 * If `job` is not NULL, `*job` is set to a handle, which belongs to the caller: end it with
 * `anabranch_job_wait` or `anabranch_job_free`. If `job` is NULL, there is no handle to wait with. A pool of
 * one thread has no workers, so the threads that use it run its jobs. The calling thread does so before this
 * returns, or when it leaves the loop or job that it is in.
 *
 * The data behind `data` must live until the job has ended, and `f` must be allowed to use it on another
 * thread. Fails if `pool` or `f` is NULL, and in a process that was forked after the pool was made; `*job`
 * is NULL then.
 */
anabranch_status anabranch_submit(const anabranch_pool *pool,
                                  void (*f)(void *data),
                                  void *data,
                                  anabranch_job **job);

/**
 * Waits until the job has ended, and frees the handle. If no thread has begun the job, the calling thread
 * runs it now. While it waits, the thread runs nothing else.
 *
 * Fails if `job` is NULL, if the job panicked, and in a process that was forked after the job was submitted.
 */
anabranch_status anabranch_job_wait(anabranch_job *job);

/**
 * Whether the job has ended, so that `anabranch_job_wait` returns at once. Returns false, and sets the
 * error, if `job` is NULL and in a process that was forked after the job was submitted.
 */
bool anabranch_job_is_done(const anabranch_job *job);

/**
 * Frees the handle without waiting. The job still runs. NULL is allowed.
 */
void anabranch_job_free(anabranch_job *job);

/**
 * Calls `body(b, e, data)` for consecutive ranges [b, e) that together are [begin, end), on the threads of
 * the pool and on the calling thread, several at a time. Returns when all calls have returned.
 *
 * Every range has `chunk` elements, the last one perhaps fewer; with 0 there are up to 256 ranges of the
 * same size. So the ranges depend on the arguments alone, never on the number of threads. If `begin` equals
 * `end`, `body` is not called.
 *
 * If a call returns a value other than 0, later ranges that have not begun are skipped, and all earlier ones
 * are done. The result is ANABRANCH_CANCELLED then, and `anabranch_last_code` is the value that the call for
 * the lowest such range returned.
 *
 * `body` must be allowed to use `data` on several threads at once. It may call any function, this one too.
 * While a thread waits here, it works on this loop and nothing else. Fails if `pool` or `body` is NULL, if
 * `begin` is greater than `end`, and in a process that was forked after the pool was made.
 */
anabranch_status anabranch_parallel_for(const anabranch_pool *pool,
                                        size_t begin,
                                        size_t end,
                                        size_t chunk,
                                        int (*body)(size_t begin, size_t end, void *data),
                                        void *data);

/**
 * The calling thread's number among the threads that work on the innermost loop around this call: from 0 to
 * `anabranch_participant_count` - 1. No two of them have the same number at the same time. 0 outside of all
 * loops.
 */
size_t anabranch_participant_index(void);

/**
 * The number of threads that may work on the innermost loop around this call. 1 outside of all loops.
 */
size_t anabranch_participant_count(void);

/**
 * Calls `f(memory, data)` on the calling thread with `bytes` bytes of memory, which belong to `f` until it
 * returns. Their address is a multiple of 64, and their contents are unspecified.
 *
 * The memory stays with the thread: the next call for as many bytes allocates nothing. Calls may be nested.
 * If the system has no more memory, the program ends. Fails if `f` is NULL or `bytes` is more than
 * PTRDIFF_MAX - 64.
 */
anabranch_status anabranch_scratch(size_t bytes, void (*f)(void *memory, void *data), void *data);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ANABRANCH_H */
