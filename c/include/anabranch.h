/*
 * Anabranch: threads, parallel loops and jobs, for C11 and C++.
 *
 * This file is made from c/src/ffi.rs; changes belong there.
 *
 * Threads      Every function may be called by any thread at any time, inside callbacks too, also by threads that the
 *              library did not make. Nothing needs to be set up for a thread.
 * Ownership    A pool and the handle of a job belong to the program until it gives them back, once. `data` is passed
 *              through and never looked at. It must be what the callback expects, on the threads that call it.
 * Callbacks    They return normally: no longjmp, no pthread_exit, no C++ exception may leave them. An exception that
 *              does ends the program.
 * Errors       A function that can fail returns an anabranch_status; the thread's last error has a message. NULL
 *              where something must be is an error. Wrong and freed pointers are not found out.
 * fork         In a forked child, pools of the parent are an error, ANABRANCH_FORKED. Make new ones there.
 */

#ifndef ANABRANCH_H
#define ANABRANCH_H

#include <stdbool.h>
#include <stddef.h>

/**
 * What a call has come to. What went wrong is said by `anabranch_last_error`.
 */
typedef enum {
  /**
   * The call did what it says.
   */
  ANABRANCH_OK = 0,
  /**
   * An argument must not have this value; nothing was done.
   */
  ANABRANCH_INVALID_ARGUMENT = 1,
  /**
   * A callback that is written in Rust panicked, or the library itself did.
   */
  ANABRANCH_PANIC = 2,
  /**
   * This process was forked after the pool was made: its threads are in the parent process. Nothing was done.
   */
  ANABRANCH_FORKED = 3,
  /**
   * This cannot be done inside a loop (or a job). Nothing was done.
   */
  ANABRANCH_STILL_INSIDE = 4,
  /**
   * The calling thread is not attached. Nothing was done.
   */
  ANABRANCH_NOT_ATTACHED = 5,
  /**
   * A callback returned a value other than 0, and the rest of the loop was left out.
   */
  ANABRANCH_CANCELLED = 6,
  /**
   * An environment variable has a value that it must not have. Nothing was done.
   */
  ANABRANCH_ENVIRONMENT = 7,
  /**
   * The operating system refused something, a thread for instance. Nothing was done.
   */
  ANABRANCH_SYSTEM = 8,
} anabranch_status;

/**
 * A job that somebody may wait for.
 */
typedef struct anabranch_job anabranch_job;

/**
 * A team of threads. Any number of threads may use one pool at the same time.
 */
typedef struct anabranch_pool anabranch_pool;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a pool whose loops run on `threads` threads: the one that calls, and `threads - 1` workers that are started now.
 *
 * With 0 it has as many as the environment variable ANABRANCH_NUM_THREADS says, or else as this process may use
 * processors. ANABRANCH_PIN and ANABRANCH_WAIT_POLICY are heeded too.
 *
 * Returns NULL where that fails: `anabranch_last_status` and `anabranch_last_error` say why. The pool belongs to the caller,
 * who frees it with `anabranch_pool_free`.
 */
anabranch_pool *anabranch_pool_new(size_t threads);

/**
 * Runs the jobs of the pool that are still waiting, ends its threads, waits for them and frees the pool.
 *
 * No other call with this pool may be in progress on any thread, and none may follow. Inside a loop this is refused
 * (ANABRANCH_STILL_INSIDE), and the pool lives on. NULL is allowed. A process that was forked after the pool was made may
 * free it too, and waits for nobody.
 */
anabranch_status anabranch_pool_free(anabranch_pool *pool);

/**
 * How many threads a loop has when the calling thread runs it on this pool; 0 where `pool` is NULL.
 */
size_t anabranch_pool_threads(const anabranch_pool *pool);

/**
 * What went wrong in the last call of this thread that failed, in English (UTF-8, less than 1024 bytes); the empty string
 * where none has. Never NULL.
 *
 * The string belongs to the library. It may be read by this thread until its next call that fails, or until
 * `anabranch_clear_error`.
 */
const char *anabranch_last_error(void);

/**
 * The status of the last call of this thread that failed; ANABRANCH_OK where none has.
 */
anabranch_status anabranch_last_status(void);

/**
 * What the callback returned that made the last call of this thread fail (ANABRANCH_CANCELLED); 0 where it failed for
 * another reason, or none has failed.
 */
int anabranch_last_code(void);

/**
 * Forgets what went wrong in calls of this thread.
 */
void anabranch_clear_error(void);

/**
 * Makes the calling thread a member of the runtime, until it detaches or ends.
 *
 * Nobody needs this: every thread may call everything, and joins by itself when it first needs to. It is for threads that
 * shall be ready before their first call. Attachments count: the thread leaves with the last `anabranch_detach`.
 */
anabranch_status anabranch_attach(void);

/**
 * Ends one attachment of the calling thread. With the last one, what the runtime keeps for the thread is lent to others; the
 * thread may go on to call everything, and may attach again.
 *
 * Fails where the thread is not attached (ANABRANCH_NOT_ATTACHED), and where this is the last attachment and the thread is
 * inside a loop or a job (ANABRANCH_STILL_INSIDE): then it stays attached. A thread that ends need not detach.
 */
anabranch_status anabranch_detach(void);

/**
 * Calls `f(data)` on the calling thread, which may be any, with `pool` as its own: for callbacks by which a program comes
 * into the runtime from threads that it did not make. Takes no lock and allocates nothing.
 *
 * Fails where `pool` or `f` is NULL, and in a process that was forked after the pool was made: `f` is not called then.
 */
anabranch_status anabranch_call(const anabranch_pool *pool,
                                void (*f)(void *data),
                                void *data);

/**
 * Hands over a job: `f(data)` is called some time later, on a worker of the pool or by `anabranch_job_wait`. Jobs begin in
 * about the order in which they were submitted.
 *
 * Where `job` is not NULL, `*job` is set to a handle, which belongs to the caller: `anabranch_job_wait` or `anabranch_job_free`
 * ends it. With NULL nobody waits for the job. A pool of one thread has no workers: its jobs are run
 * by the threads that use it. The calling one does so before this returns, or when it leaves the loop or job that it is in.
 *
 * What `data` points to must live until the job has ended, and `f` must be allowed to use it on another thread.
 * Fails where `pool` or `f` is NULL, and in a process that was forked after the pool was made; `*job` is NULL then.
 */
anabranch_status anabranch_submit(const anabranch_pool *pool,
                                  void (*f)(void *data),
                                  void *data,
                                  anabranch_job **job);

/**
 * Waits until the job has ended, and frees the handle. A job that nobody has begun is run now, by the calling thread; while
 * it waits, the thread runs nothing else.
 *
 * Fails where `job` is NULL, where the job panicked, and in a process that was forked after the job was submitted.
 */
anabranch_status anabranch_job_wait(anabranch_job *job);

/**
 * Whether the job has ended, so that `anabranch_job_wait` returns at once. False, with an error, where `job` is NULL and in a
 * process that was forked after the job was submitted.
 */
bool anabranch_job_is_done(const anabranch_job *job);

/**
 * Frees the handle without waiting: the job is run all the same. NULL is allowed.
 */
void anabranch_job_free(anabranch_job *job);

/**
 * Calls `body(b, e, data)` for consecutive ranges [b, e) that together are [begin, end), on the threads of the pool and on the
 * calling thread, several at a time; returns when all calls have returned.
 *
 * Every range has `chunk` elements, the last one perhaps fewer; with 0 there are up to 256 ranges of the same size. So the
 * ranges follow from the arguments alone, never from the number of threads. An empty range calls nothing.
 *
 * Where a call returns something other than 0, ranges behind it that have not begun are left out. Those before it are all
 * done. The result is ANABRANCH_CANCELLED then, and `anabranch_last_code` is what the call for the lowest such range returned.
 *
 * `body` must be allowed to use `data` on several threads at once. It may call everything, this function too; while a thread
 * waits here, it works on this loop and nothing else.
 * Fails where `pool` or `body` is NULL, where `begin` is greater than `end`, and in a process that was forked after the pool
 * was made.
 */
anabranch_status anabranch_parallel_for(const anabranch_pool *pool,
                                        size_t begin,
                                        size_t end,
                                        size_t chunk,
                                        int (*body)(size_t begin, size_t end, void *data),
                                        void *data);

/**
 * The calling thread's number among those that work on the innermost loop around this call: from 0 to
 * `anabranch_participant_count` - 1, and no two of them have the same at a time. 0 outside of all loops.
 */
size_t anabranch_participant_index(void);

/**
 * How many threads may work on the innermost loop around this call. 1 outside of all loops.
 */
size_t anabranch_participant_count(void);

/**
 * Calls `f(memory, data)` on the calling thread with `bytes` bytes of memory, which are its own until `f` returns. They begin
 * at a multiple of 64; what is in them is unspecified.
 *
 * The memory stays with the thread: the next call for as much allocates nothing. Calls may be nested. Where the system has
 * no more memory, the program ends.
 * Fails where `f` is NULL or `bytes` is more than PTRDIFF_MAX.
 */
anabranch_status anabranch_scratch(size_t bytes,
                                   void (*f)(void *memory, void *data),
                                   void *data);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ANABRANCH_H */
