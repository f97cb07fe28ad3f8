// OpenMP's side of the benchmarks: see peer.hpp.
#include "peer.hpp"

static std::vector<double> empty_region(const peer::Request &request) {
    const int threads = request.threads;
    return request.time([threads] {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int i = 0; i < threads; i++) peer::keep(i);
    });
}

int main() { return peer::serve({{"empty-region", empty_region}}); }
