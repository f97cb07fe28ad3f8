// Shared by the programs for Task Bench, which execute a graph of tasks (workloads/task_bench).
//
// The first line of the input is
//
//     THREADS KEPT WIDTH FIRST PERIOD, and for each column of each step of one period: COUNT COLUMN...
//
// Step 0 has FIRST tasks, and each later step twice as many, up to WIDTH. They need the results of the columns that are listed, of
// the step before. The results of KEPT steps at least are kept. The answer is an empty line. Further lines are answered by nanoseconds:
//
//     alone 0 0               one iteration, while all threads compute
//     run STEPS ITERATIONS    a run
//
// A program ends with its input, and with a message if a task finds another result than that of a task that it depends on.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace task_bench {

using Clock = std::chrono::steady_clock;

inline double since(Clock::time_point begin) {
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

struct Graph {
    long threads = 1, kept = 1, width = 1, first = 1, period = 1;
    // For each column of each step of one period.
    std::vector<std::vector<long>> columns;

    explicit Graph(const std::string &line) {
        std::istringstream input(line);
        input >> threads >> kept >> width >> first >> period;
        kept = (kept + period - 1) / period * period;
        columns.resize(period * width);
        for (auto &needed : columns) {
            long count = 0;
            input >> count;
            needed.resize(count);
            for (long &column : needed) input >> column;
        }
        if (!input) {
            std::fprintf(stderr, "the graph `%s` is not complete\n", line.c_str());
            std::exit(1);
        }
    }

    long width_at(long step) const { return step < 16 ? std::min(width, first << step) : width; }

    const std::vector<long> &needed(long step, long column) const {
        return columns[step % period * width + column];
    }
};

// Eight chains of multiply-adds, for this many iterations, as in workloads/task_bench/work.rs.
__attribute__((noinline)) inline double compute(long iterations) {
    double values[8] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8};
    for (long i = 0; i < iterations; i++)
        for (double &value : values) value = value * 0.999 + 0.001;
    double sum = 0;
    for (double value : values) sum += value;
    return sum;
}

inline void keep(double value) { asm volatile("" : : "x"(value)); }

// How many iterations are timed alone, and how often.
constexpr long alone_iterations = 1 << 19, alone_samples = 7;

inline double alone() {
    const auto begin = Clock::now();
    keep(compute(alone_iterations));
    return since(begin) / double(alone_iterations);
}

// A result on a cache line of its own.
struct alignas(64) Line {
    std::uint64_t result = 0;
};

inline std::uint64_t result(std::uint64_t run, std::uint64_t step, std::uint64_t column) {
    return run << 48 | step << 16 | column;
}

inline void expect(std::uint64_t found, std::uint64_t run, long step, long column) {
    if (found == result(run, step, column)) return;
    std::printf("error: %#llx is not the result of task %ld of step %ld\n", (unsigned long long)found, column, step);
    std::fflush(stdout);
    std::_Exit(1);
}

} // namespace task_bench
