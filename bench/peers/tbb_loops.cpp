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
#include <tbb/parallel_reduce.h>
#include <tbb/parallel_sort.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

using Range = tbb::blocked_range<long>;

static tbb::global_control limit(const peer::Request &request) {
    return tbb::global_control(tbb::global_control::max_allowed_parallelism, std::size_t(request.threads));
}

// Calls `item` for every index, in ranges that the library chooses.
template <class Item> static std::vector<double> loop(const peer::Request &request, Item item) {
    const auto limited = limit(request);
    return request.time([&] {
        tbb::parallel_for(Range(0, request.size), [&](const Range &range) {
            for (long i = range.begin(); i < range.end(); i++) item(i);
        });
    });
}

static std::vector<double> nested(const peer::Request &request) {
    return loop(request, [](long i) { peer::tiny(i); });
}

static std::vector<double> items(const peer::Request &request) {
    return loop(request, [](long i) { peer::small(i); });
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

// Times the whole recursion, which is fib(size + 1) - 1 joins.
static std::vector<double> fib(const peer::Request &request) {
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

int main() {
    return peer::serve({
        {"nested", nested},
        {"items", items},
        {"fib", [](const peer::Request &request) { return fib(request); }},
        {"sum", sum},
        {"sort", sort},
        {"scratch-initialisations", scratch_initialisations},
        {"arena-execute", arena_execute},
        {"run-and-wait", run_and_wait},
    });
}
