// OpenMP: an empty region, and empty tasks. See peer.hpp.
#include "peer.hpp"

static std::vector<double> empty_region(const peer::Request &request) {
    const int threads = request.threads, items = int(request.size);
    return request.time([threads, items] {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int i = 0; i < items; i++) peer::keep(i);
    });
}

// One thread creates empty tasks by `make` and waits for them.
template <class Make> static std::vector<double> tasks(const peer::Request &request, Make make) {
    const int threads = request.threads;
    const long size = request.size;
    return request.time([&] {
#pragma omp parallel num_threads(threads)
#pragma omp single
        for (long i = 0; i < size; i++) make(i);
    });
}

static std::vector<double> independent(const peer::Request &request) {
    return tasks(request, [](long i) {
#pragma omp task firstprivate(i)
        peer::keep(i);
    });
}

static char elements[peer::side];

static std::vector<double> chain(const peer::Request &request) {
    return tasks(request, [](long i) {
#pragma omp task firstprivate(i) depend(inout : elements[0])
        peer::keep(i);
    });
}

// Task (i, j) changes element j and reads element j - 1.
static std::vector<double> wavefront(const peer::Request &request) {
    return tasks(request, [](long i) {
        const long j = i % peer::side;
        if (j == 0) {
#pragma omp task firstprivate(i) depend(inout : elements[0])
            peer::keep(i);
        } else {
#pragma omp task firstprivate(i) depend(inout : elements[j]) depend(in : elements[j - 1])
            peer::keep(i);
        }
    });
}

int main() {
    return peer::serve({
        {"empty-region", empty_region},
        {"tasks-independent", independent},
        {"tasks-chain", chain},
        {"tasks-wavefront", wavefront},
    });
}
