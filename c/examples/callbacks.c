/* The cost of a callback through the library, in C calls.
 *
 * Five loops run the same function: inlined, as a C function, and as a callback that enters the runtime by anabranch_call,
 * on a thread of the runtime, on a thread of the program that stays attached, and on one that attaches and detaches each
 * time. The fastest of several rounds counts. The cost in C calls is
 *
 *     ([elapsed] - [inline]) / ([C call] - [inline])
 *
 *     callbacks [CALLS [ROUNDS]]
 */
#define _POSIX_C_SOURCE 200809L
#include "anabranch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long calls = 5000000;
static int rounds = 7;
static anabranch_pool *pool;

/* The function. It is a volatile store, which the compiler cannot remove. */
static inline void work(void *data) { *(volatile int *)data = 1; }

__attribute__((noinline)) static void regular(void *data) {
    work(data);
    __asm__ volatile("");
}

static void control(void *data) {
    for (long i = 0; i < calls; i++) {
        work(data);
    }
}

static void c_call(void *data) {
    void (*volatile hidden)(void *) = regular;
    void (*f)(void *) = hidden;
    for (long i = 0; i < calls; i++) {
        f(data);
    }
}

static void callback(void *data) {
    for (long i = 0; i < calls; i++) {
        anabranch_call(pool, regular, data);
    }
}

static void callback_attached_each_time(void *data) {
    for (long i = 0; i < calls; i++) {
        anabranch_attach();
        anabranch_call(pool, regular, data);
        anabranch_detach();
    }
}

/* One measurement: a loop, and the nanoseconds of one iteration. */
struct row {
    const char *name;
    void (*loop)(void *);
    pthread_t main;
    int attach;
    int elsewhere;
    double ns;
};

static void measure(void *data) {
    struct row *row = data;
    int seen = 0;
    row->elsewhere = !pthread_equal(row->main, pthread_self());
    for (int round = 0; round < rounds; round++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        row->loop(&seen);
        clock_gettime(CLOCK_MONOTONIC, &end);
        double ns = ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / (double)calls;
        if (round == 0 || ns < row->ns) {
            row->ns = ns;
        }
    }
    if (!seen) {
        fprintf(stderr, "%s: the function was not called\n", row->name);
        exit(1);
    }
}

static void *on_thread(void *data) {
    struct row *row = data;
    if (row->attach) {
        anabranch_attach();
    }
    measure(row);
    return NULL;
}

static void fail(void) {
    fprintf(stderr, "%s\n", anabranch_last_error());
    exit(1);
}

/* Measures on a worker of the pool. This thread must not call anabranch_job_wait early, or it would run the job itself. */
static void measure_on_worker(struct row *row) {
    anabranch_job *job;
    if (anabranch_submit(pool, measure, row, &job) != ANABRANCH_OK) {
        fail();
    }
    while (!anabranch_job_is_done(job)) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    if (anabranch_job_wait(job) != ANABRANCH_OK) {
        fail();
    }
}

static void measure_on_foreign_thread(struct row *row) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, on_thread, row) != 0 || pthread_join(thread, NULL) != 0) {
        fprintf(stderr, "could not start a thread\n");
        exit(1);
    }
}

int main(int argc, char **argv) {
    if (argc > 1) {
        calls = strtol(argv[1], NULL, 10);
    }
    if (argc > 2) {
        rounds = atoi(argv[2]);
    }
    pool = anabranch_pool_new(2);
    if (pool == NULL) {
        fail();
    }
    pthread_t me = pthread_self();
    struct row rows[] = {
        {"control (inline, no call)", control, me, 0, 0, 0},
        {"regular C call (C -> C)", c_call, me, 0, 0, 0},
        {"callback on a runtime thread", callback, me, 0, 0, 0},
        {"callback on a foreign thread, attached", callback, me, 1, 0, 0},
        {"the same, with attach and detach each time", callback_attached_each_time, me, 0, 0, 0},
    };
    measure(&rows[0]);
    measure(&rows[1]);
    measure_on_worker(&rows[2]);
    measure_on_foreign_thread(&rows[3]);
    measure_on_foreign_thread(&rows[4]);

    double inlined = rows[0].ns, call = rows[1].ns - inlined;
    printf("%-44s %8s %8s\n", "", "ns", "C calls");
    for (int i = 0; i < 5; i++) {
        if (rows[i].elsewhere != (i >= 2)) {
            fprintf(stderr, "%s: on the wrong thread\n", rows[i].name);
            return 1;
        }
        printf("%-44s %8.2f %8.1f\n", rows[i].name, rows[i].ns, (rows[i].ns - inlined) / call);
    }
    return anabranch_pool_free(pool) == ANABRANCH_OK ? 0 : 1;
}
