// Shared by the peer programs, which answer requests, one line each, until their input ends.
//
// Request:  BENCHMARK SIZE COLUMNS THREADS SAMPLES BATCH PAUSE_NS
// Answer:   the nanoseconds of one operation, SAMPLES times, or `error: ...`
//
// SIZE is the number of items of a region, of tasks of a graph, or of rows of a grid, which has COLUMNS columns; an operation is
// the region, the graph, or a step of the grid. For a graph of tasks that are not empty, COLUMNS is the number of steps of each.
// A sample is the time of BATCH operations, divided by BATCH; before each sample the program spins for PAUSE_NS.
// The benchmark program measures its own code in the same way (harness.rs, Load::time).
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace peer {

// The length of a row of a wavefront: task (i, j) is number i * side + j (workloads/empty_tasks.rs).
constexpr long side = 316;

using Clock = std::chrono::steady_clock;

inline double since(Clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

// Makes the compiler assume that the value is used.
template <class T> inline void keep(const T &value) { asm volatile("" : : "g"(value) : "memory"); }

// The items of loops are the same as in rows/loops/work.rs. The value passes through memory, as it does there, so that
// the compiler does not vectorise a loop over items.
inline void pass(std::uint64_t value) { asm volatile("" : : "r"(&value) : "memory"); }

// An item of one multiply-add.
inline void tiny(std::uint64_t i) { pass(i * 6364136223846793005 + 1442695040888963407); }

// Number `i` of the sequence of SplitMix64.
inline std::uint64_t random(std::uint64_t i) {
    i = (i + 1) * 0x9e3779b97f4a7c15;
    i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9;
    i = (i ^ (i >> 27)) * 0x94d049bb133111eb;
    return i ^ (i >> 31);
}

// An item of about a nanosecond.
inline void small(std::uint64_t i) { pass(random(i)); }

// An item of many steps, each of which needs the result of the one before.
inline void work(std::uint64_t x, long steps) {
    for (long step = 0; step < steps; step++) x = random(x);
    pass(x);
}

// Number `i` of the same sequence, scaled to the range from 0 to 1.
inline double fraction(std::uint64_t i) { return double(random(i) >> 11) / double(1L << 53); }

inline std::vector<double> fractions(long count) {
    std::vector<double> values(count);
    for (long i = 0; i < count; i++) values[i] = fraction(i);
    return values;
}

struct Request {
    long size = 1, columns = 1;
    int threads = 1;
    long samples = 1, batch = 1;
    double pause_ns = 0;

    template <class Operation> std::vector<double> time(Operation operation) const {
        for (long i = 0; i < batch; i++) operation();
        std::vector<double> result;
        for (long sample = 0; sample < samples; sample++) {
            const auto pause = Clock::now();
            while (since(pause) < pause_ns) {}
            const auto begin = Clock::now();
            for (long i = 0; i < batch; i++) operation();
            result.push_back(since(begin) / double(batch));
        }
        return result;
    }
};

// A copy of the data for each operation, for operations that change it.
inline std::vector<std::vector<std::uint64_t>> unsorted(const Request &request) {
    std::vector<std::uint64_t> data(request.size);
    for (long i = 0; i < request.size; i++) data[i] = random(i);
    return std::vector<std::vector<std::uint64_t>>((request.samples + 1) * request.batch, data);
}

using Benchmark = std::function<std::vector<double>(const Request &)>;

inline int serve(const std::map<std::string, Benchmark> &benchmarks) {
    std::string name;
    Request request;
    while (std::cin >> name >> request.size >> request.columns >> request.threads >> request.samples >> request.batch >>
           request.pause_ns) {
        const auto found = benchmarks.find(name);
        if (found == benchmarks.end()) {
            std::printf("error: no benchmark is called %s", name.c_str());
        } else {
            for (double ns : found->second(request)) std::printf("%.3f ", ns);
        }
        std::printf("\n");
        std::fflush(stdout);
    }
    return 0;
}

} // namespace peer
