// oneTBB: loops, and calls from foreign threads. See peer.hpp.
#include "peer.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>

#include <tbb/blocked_range.h>
#include <tbb/enumerable_thread_specific.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>
#include <tbb/parallel_reduce.h>
#include <tbb/parallel_sort.h>
#include <tbb/partitioner.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

using Range = tbb::blocked_range<long>;

static tbb::global_control limit(const peer::Request &request) {
    return tbb::global_control(tbb::global_control::max_allowed_parallelism, std::size_t(request.threads));
}

// Calls `item` for every index, in ranges that the partitioner chooses: of at least `grain` items, with
// `simple_partitioner` of at most `grain` items.
template <class Partitioner, class Item>
static std::vector<double> loop(const peer::Request &request, long items, long grain, Item item) {
    const auto limited = limit(request);
    return request.time([&] {
        const auto run = [&](const Range &range) {
            for (long i = range.begin(); i < range.end(); i++) item(i);
        };
        tbb::parallel_for(Range(0, items, grain), run, Partitioner());
    });
}

template <class Partitioner, long grain = 1> static std::vector<double> nested(const peer::Request &request) {
    return loop<Partitioner>(request, request.size, grain, [](long i) { peer::tiny(i); });
}

template <class Partitioner, long grain = 1> static std::vector<double> items(const peer::Request &request) {
    return loop<Partitioner>(request, request.size, grain, [](long i) { peer::small(i); });
}

// Two items of SIZE steps each.
template <class Partitioner> static std::vector<double> two_items(const peer::Request &request) {
    const long steps = request.size;
    return loop<Partitioner>(request, 2, 1, [steps](long i) { peer::work(i, steps); });
}

static std::vector<double> two_items_invoke(const peer::Request &request) {
    const auto limited = limit(request);
    const long steps = request.size;
    return request.time(
        [steps] { tbb::parallel_invoke([steps] { peer::work(0, steps); }, [steps] { peer::work(1, steps); }); });
}

static long fib(long n) {
    if (n < 2) return n;
    long a = 0;
    tbb::task_group group;
    group.run([&a, n] { a = fib(n - 1); });
    const long b = fib(n - 2);
    group.wait();
    return a + b;
}

static long fib_invoke(long n) {
    if (n < 2) return n;
    long a = 0, b = 0;
    tbb::parallel_invoke([&a, n] { a = fib_invoke(n - 1); }, [&b, n] { b = fib_invoke(n - 2); });
    return a + b;
}

// Times the whole recursion, which is fib(size + 1) - 1 joins.
template <long (*fib)(long)> static std::vector<double> recursion(const peer::Request &request) {
    const auto limited = limit(request);
    return request.time([&request] { peer::keep(fib(request.size)); });
}

static std::vector<double> sum(const peer::Request &request) {
    const auto limited = limit(request);
    const std::vector<double> data = peer::fractions(request.size);
    const double *x = data.data();
    const auto fold = [x](const Range &range, double sum) {
#pragma omp simd reduction(+ : sum)
        for (long i = range.begin(); i < range.end(); i++) sum += x[i];
        return sum;
    };
    return request.time([&] {
        peer::keep(tbb::parallel_reduce(Range(0, request.size), 0.0, fold, std::plus<double>()));
    });
}

static std::vector<double> sort(const peer::Request &request) {
    const auto limited = limit(request);
    auto unsorted = peer::unsorted(request);
    auto next = unsorted.begin();
    return request.time([&] {
        tbb::parallel_sort(next->begin(), next->end());
        ++next;
    });
}

// Counts the buffers of a loop in which every item needs one: 256 x 16 by 16 x 256 into 256 x 256. One count per sample.
static std::vector<double> scratch_initialisations(const peer::Request &request) {
    constexpr long rows = 256, inner = 16;
    const auto limited = limit(request);
    const std::vector<double> a = peer::fractions(rows * inner), b = peer::fractions(inner * rows);
    std::vector<double> counts;
    for (long sample = 0; sample < request.samples; sample++) {
        tbb::enumerable_thread_specific<std::vector<double>> scratch([] { return std::vector<double>(rows * rows); });
        tbb::parallel_for(Range(0, request.size), [&](const Range &range) {
            for (long item = range.begin(); item < range.end(); item++) {
                std::vector<double> &c = scratch.local();
                for (long i = 0; i < rows; i++) {
                    double *row = &c[i * rows];
                    std::fill(row, row + rows, 0);
                    for (long k = 0; k < inner; k++)
                        for (long j = 0; j < rows; j++) row[j] += a[i * inner + k] * b[k * rows + j];
                }
                peer::keep(c.data());
            }
        });
        counts.push_back(double(scratch.size()));
    }
    return counts;
}

// Times an operation on a foreign thread, which stays attached. `prepare` creates the operation on that thread.
template <class Prepare> static std::vector<double> on_a_foreign_thread(const peer::Request &request, Prepare prepare) {
    const auto limited = limit(request);
    std::vector<double> times;
    std::thread([&] { times = request.time(prepare()); }).join();
    return times;
}

static std::vector<double> arena_execute(const peer::Request &request) {
    return on_a_foreign_thread(request, [&request] {
        auto arena = std::make_shared<tbb::task_arena>(request.threads);
        return [arena] { arena->execute([] { peer::keep(0); }); };
    });
}

static std::vector<double> run_and_wait(const peer::Request &request) {
    return on_a_foreign_thread(request, [] {
        auto group = std::make_shared<tbb::task_group>();
        return [group] { group->run_and_wait([] { peer::keep(0); }); };
    });
}

// Runs SIZE empty jobs and waits for all of them.
static std::vector<double> run_until_done(const peer::Request &request) {
    return on_a_foreign_thread(request, [&request] {
        auto group = std::make_shared<tbb::task_group>();
        return [group, &request] {
            for (long i = 0; i < request.size; i++) group->run([i] { peer::keep(i); });
            group->wait();
        };
    });
}

int main() {
    return peer::serve({
        {"nested", nested<tbb::auto_partitioner>},
        {"nested-static", nested<tbb::static_partitioner>},
        {"nested-simple", nested<tbb::simple_partitioner, 250>},
        {"items", items<tbb::auto_partitioner>},
        {"items-static", items<tbb::static_partitioner>},
        {"items-simple", items<tbb::simple_partitioner, 16384>},
        {"two-items-static", two_items<tbb::static_partitioner>},
        {"two-items-simple", two_items<tbb::simple_partitioner>},
        {"two-items-invoke", two_items_invoke},
        {"run-until-done", run_until_done},
        {"fib", recursion<fib>},
        {"fib-invoke", recursion<fib_invoke>},
        {"sum", sum},
        {"sort", sort},
        {"scratch-initialisations", scratch_initialisations},
        {"arena-execute", arena_execute},
        {"run-and-wait", run_and_wait},
    });
}
