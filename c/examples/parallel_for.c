/* Parallel loops and jobs, from the main thread and from the program's own threads, and the errors of wrong calls. The program
 * checks every result, and returns 0 if all are right.
 *
 *     parallel_for [ELEMENTS]
 */
#include "anabranch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                             \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            fprintf(stderr, "%s:%d: not true: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
                    anabranch_last_error());                                                         \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

#define OK(call) CHECK((call) == ANABRANCH_OK)

static size_t elements = 100000;

/* A loop that writes: y = a x + y. */
struct axpy {
    double a;
    const double *x;
    double *y;
};

static int axpy(size_t begin, size_t end, void *data) {
    const struct axpy *task = data;
    for (size_t i = begin; i < end; i++) {
        task->y[i] += task->a * task->x[i];
    }
    return 0;
}

static void run_axpy(const anabranch_pool *pool, size_t chunk) {
    double *x = malloc(elements * sizeof *x), *y = malloc(elements * sizeof *y);
    CHECK(x != NULL && y != NULL);
    for (size_t i = 0; i < elements; i++) {
        x[i] = (double)i;
        y[i] = 1.0;
    }
    struct axpy task = {2.0, x, y};
    OK(anabranch_parallel_for(pool, 0, elements, chunk, axpy, &task));
    for (size_t i = 0; i < elements; i++) {
        CHECK(y[i] == 1.0 + 2.0 * (double)i);
    }
    free(x);
    free(y);
}

/* A loop that sums. Each call has scratch memory of its own. */
struct sum {
    const anabranch_pool *pool;
    _Atomic uint64_t total;
};

struct piece {
    size_t begin, end;
    struct sum *sum;
};

static void sum_piece(void *memory, void *data) {
    const struct piece *piece = data;
    uint64_t *squares = memory, total = 0;
    CHECK((uintptr_t)memory % 64 == 0);
    for (size_t i = piece->begin; i < piece->end; i++) {
        squares[i - piece->begin] = (uint64_t)i * i;
    }
    for (size_t i = piece->begin; i < piece->end; i++) {
        total += squares[i - piece->begin];
    }
    atomic_fetch_add(&piece->sum->total, total);
}

static int sum_squares(size_t begin, size_t end, void *data) {
    struct piece piece = {begin, end, data};
    CHECK(anabranch_participant_index() < anabranch_participant_count());
    OK(anabranch_scratch((end - begin) * sizeof(uint64_t), sum_piece, &piece));
    return 0;
}

static uint64_t squares_below(uint64_t n) { return n == 0 ? 0 : (n - 1) * n * (2 * n - 1) / 6; }

/* A loop inside a loop. */
static int outer(size_t begin, size_t end, void *data) {
    struct sum *sum = data;
    for (size_t i = begin; i < end; i++) {
        OK(anabranch_parallel_for(sum->pool, 0, 100, 10, sum_squares, sum));
    }
    return 0;
}

static void run_sums(const anabranch_pool *pool) {
    struct sum sum = {pool, 0};
    OK(anabranch_parallel_for(pool, 10, 1000, 7, sum_squares, &sum));
    CHECK(sum.total == squares_below(1000) - squares_below(10));
    sum.total = 0;
    OK(anabranch_parallel_for(pool, 0, 8, 1, outer, &sum));
    CHECK(sum.total == 8 * squares_below(100));
}

/* Return values other than 0: the lowest range counts. */
static int refuse(size_t begin, size_t end, void *data) {
    atomic_size_t *done = data;
    if (begin <= 300 && 300 < end) {
        return 3;
    }
    if (begin >= 700) {
        return 7;
    }
    atomic_fetch_add(done, end - begin);
    return 0;
}

static void run_refusals(const anabranch_pool *pool) {
    atomic_size_t done = 0;
    CHECK(anabranch_parallel_for(pool, 0, 1000, 10, refuse, &done) == ANABRANCH_CANCELLED);
    CHECK(anabranch_last_status() == ANABRANCH_CANCELLED && anabranch_last_code() == 3);
    CHECK(strcmp(anabranch_last_error(), "the callback for [300, 310) returned 3") == 0);
    CHECK(done >= 300 && done < 1000);
    anabranch_clear_error();
    CHECK(strcmp(anabranch_last_error(), "") == 0 && anabranch_last_code() == 0);
}

/* Attachments. A thread (possibly a worker) cannot end its last one inside a loop, so it keeps that one. */
static int detach_inside(size_t begin, size_t end, void *data) {
    (void)begin, (void)end;
    OK(anabranch_attach());
    OK(anabranch_attach());
    OK(anabranch_detach());
    while (anabranch_detach() == ANABRANCH_OK) {
    }
    CHECK(anabranch_last_status() == ANABRANCH_STILL_INSIDE);
    atomic_fetch_add((atomic_size_t *)data, 1);
    return 0;
}

static void detach_from_all(void) {
    while (anabranch_detach() == ANABRANCH_OK) {
    }
    CHECK(anabranch_last_status() == ANABRANCH_NOT_ATTACHED);
}

static void run_attachments(const anabranch_pool *pool) {
    atomic_size_t refused = 0;
    OK(anabranch_parallel_for(pool, 0, 16, 1, detach_inside, &refused));
    CHECK(refused == 16);
    detach_from_all();
    OK(anabranch_attach());
    OK(anabranch_attach());
    OK(anabranch_detach());
    OK(anabranch_detach());
    CHECK(anabranch_detach() == ANABRANCH_NOT_ATTACHED);
}

/* Calls and jobs. The counter of jobs that have no handle must not be on a stack, because no call waits for them. */
static atomic_size_t detached_calls;

enum { JOBS = 100 };

static void count(void *data) { atomic_fetch_add((atomic_size_t *)data, 1); }

static void detach_in_job(void *data) { detach_inside(0, 1, data); }

static void run_jobs(const anabranch_pool *pool) {
    anabranch_job *jobs[JOBS];
    atomic_size_t calls = 0;
    OK(anabranch_call(pool, count, &calls));
    CHECK(calls == 1);
    for (int i = 0; i < JOBS; i++) {
        OK(anabranch_submit(pool, count, &calls, &jobs[i]));
        OK(anabranch_submit(pool, count, &detached_calls, NULL));
    }
    for (int i = JOBS - 1; i >= 0; i--) {
        OK(anabranch_job_wait(jobs[i]));
    }
    CHECK(calls == 1 + JOBS);
    OK(anabranch_submit(pool, detach_in_job, &calls, &jobs[0]));
    OK(anabranch_job_wait(jobs[0]));
    CHECK(calls == 2 + JOBS);
    OK(anabranch_submit(pool, count, &detached_calls, &jobs[0]));
    anabranch_job_free(jobs[0]);
    OK(anabranch_submit(pool, count, &calls, &jobs[0]));
    OK(anabranch_job_wait(jobs[0]));
    anabranch_job_free(NULL);
}

/* Wrong calls, which must fail. */
static int never(size_t begin, size_t end, void *data) {
    (void)begin, (void)end, (void)data;
    CHECK(!"called");
    return 1;
}

static int free_inside(size_t begin, size_t end, void *data) {
    (void)begin, (void)end;
    return anabranch_pool_free(data) == ANABRANCH_STILL_INSIDE ? 0 : 1;
}

static void run_errors(anabranch_pool *pool) {
    const anabranch_status invalid = ANABRANCH_INVALID_ARGUMENT;
    anabranch_job *job = (anabranch_job *)&pool;
    CHECK(anabranch_call(NULL, count, NULL) == invalid);
    CHECK(strcmp(anabranch_last_error(), "anabranch_call: the argument pool is NULL") == 0);
    CHECK(anabranch_call(pool, NULL, NULL) == invalid);
    CHECK(strcmp(anabranch_last_error(), "anabranch_call: the argument f is NULL") == 0);
    CHECK(anabranch_submit(NULL, count, NULL, &job) == invalid && job == NULL);
    CHECK(anabranch_submit(pool, NULL, NULL, NULL) == invalid);
    CHECK(anabranch_job_wait(NULL) == invalid);
    CHECK(!anabranch_job_is_done(NULL) && anabranch_last_status() == invalid);
    CHECK(anabranch_parallel_for(NULL, 0, 1, 0, never, NULL) == invalid);
    CHECK(anabranch_parallel_for(pool, 0, 1, 0, NULL, NULL) == invalid);
    CHECK(anabranch_parallel_for(pool, 1, 0, 0, never, NULL) == invalid);
    OK(anabranch_parallel_for(pool, 5, 5, 0, never, NULL));
    OK(anabranch_parallel_for(pool, 5, 5, 1, never, NULL));
    CHECK(anabranch_scratch(64, NULL, NULL) == invalid);
    CHECK(anabranch_scratch(SIZE_MAX, sum_piece, NULL) == invalid);
    CHECK(anabranch_pool_threads(NULL) == 0 && anabranch_last_status() == invalid);
    CHECK(anabranch_pool_new(100000) == NULL && anabranch_last_status() == invalid);
    OK(anabranch_pool_free(NULL));
    OK(anabranch_parallel_for(pool, 0, 4, 1, free_inside, pool));
    CHECK(anabranch_participant_index() == 0 && anabranch_participant_count() == 1);
}

/* A thread that ends may call any function: this destructor runs after the library's own clean-up of the thread. */
static pthread_key_t at_end;

static void use_at_end(void *pool) {
    /* The thread has ended attached, which is allowed. */
    OK(anabranch_detach());
    run_sums(pool);
    run_refusals(pool);
    run_attachments(pool);
    run_errors(pool);
}

static void *foreign_thread(void *pool) {
    run_axpy(pool, 0);
    run_sums(pool);
    run_refusals(pool);
    run_attachments(pool);
    run_jobs(pool);
    run_errors(pool);
    return NULL;
}

static void *foreign_thread_that_ends_attached(void *pool) {
    CHECK(pthread_setspecific(at_end, pool) == 0);
    foreign_thread(pool);
    OK(anabranch_attach());
    return NULL;
}

int main(int argc, char **argv) {
    const size_t numbers_of_threads[] = {1, 2, 3, 4, 8};
    if (argc > 1) {
        elements = strtoul(argv[1], NULL, 10);
    }
    CHECK(pthread_key_create(&at_end, use_at_end) == 0);
    for (int n = 0; n < 5; n++) {
        size_t threads = numbers_of_threads[n];
        anabranch_pool *pool = anabranch_pool_new(threads);
        CHECK(pool != NULL && anabranch_pool_threads(pool) == threads);
        run_axpy(pool, 1000);
        foreign_thread(pool);
        pthread_t foreign_threads[4];
        for (int i = 0; i < 4; i++) {
            CHECK(pthread_create(&foreign_threads[i], NULL, foreign_thread_that_ends_attached, pool) == 0);
        }
        for (int i = 0; i < 4; i++) {
            CHECK(pthread_join(foreign_threads[i], NULL) == 0);
        }
        /* Freeing a pool runs its pending jobs first. */
        anabranch_job *last;
        atomic_size_t calls = 0;
        OK(anabranch_submit(pool, count, &calls, &last));
        OK(anabranch_pool_free(pool));
        CHECK(anabranch_job_is_done(last) && calls == 1);
        OK(anabranch_job_wait(last));
        CHECK(atomic_exchange(&detached_calls, 0) == 5 * (JOBS + 1));
        printf("%zu threads: all right\n", threads);
    }
    return 0;
}
