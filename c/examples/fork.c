/* A child process has none of its parent's threads. Calls with pools and jobs of the parent fail there, and the child makes its
 * own pool.
 *
 * The program checks every result, and returns 0 if all are right.
 */
#define _POSIX_C_SOURCE 200809L
#include "anabranch.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                             \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            fprintf(stderr, "%s:%d: not true: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
                    anabranch_last_error());                                                         \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

static void count(void *data) { atomic_fetch_add((atomic_size_t *)data, 1); }

static int add(size_t begin, size_t end, void *data) {
    for (size_t i = begin; i < end; i++) {
        atomic_fetch_add((atomic_size_t *)data, i);
    }
    return 0;
}

static void expect_sum(const anabranch_pool *pool) {
    atomic_size_t sum = 0;
    CHECK(anabranch_parallel_for(pool, 0, 1000, 0, add, &sum) == ANABRANCH_OK);
    CHECK(sum == 499500);
}

static void in_child(anabranch_pool *pool, anabranch_job *job) {
    atomic_size_t calls = 0;
    CHECK(anabranch_call(pool, count, &calls) == ANABRANCH_FORKED);
    CHECK(anabranch_submit(pool, count, &calls, NULL) == ANABRANCH_FORKED);
    CHECK(anabranch_parallel_for(pool, 0, 1, 0, add, &calls) == ANABRANCH_FORKED);
    CHECK(!anabranch_job_is_done(job) && anabranch_last_status() == ANABRANCH_FORKED);
    CHECK(anabranch_job_wait(job) == ANABRANCH_FORKED);
    CHECK(calls == 0);
    CHECK(anabranch_pool_free(pool) == ANABRANCH_OK);

    anabranch_pool *own = anabranch_pool_new(2);
    CHECK(own != NULL);
    expect_sum(own);
    CHECK(anabranch_pool_free(own) == ANABRANCH_OK);
}

int main(void) {
    const size_t numbers_of_threads[] = {1, 2, 3, 4, 8};
    for (int n = 0; n < 5; n++) {
        anabranch_pool *pool = anabranch_pool_new(numbers_of_threads[n]);
        anabranch_job *job;
        atomic_size_t calls = 0;
        CHECK(pool != NULL);
        expect_sum(pool);
        CHECK(anabranch_submit(pool, count, &calls, &job) == ANABRANCH_OK);
        pid_t child = fork();
        if (child == 0) {
            in_child(pool, job);
            _exit(0);
        }
        int status = -1;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        /* The parent goes on as before. */
        expect_sum(pool);
        CHECK(anabranch_job_wait(job) == ANABRANCH_OK && calls == 1);
        CHECK(anabranch_pool_free(pool) == ANABRANCH_OK);
    }
    return 0;
}
