// oneTBB's side of the benchmarks: see peer.hpp.
#include "peer.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>

static std::vector<double> empty_region(const peer::Request &request) {
    const int threads = request.threads;
    tbb::global_control limit(tbb::global_control::max_allowed_parallelism, std::size_t(threads));
    return request.time([threads] { tbb::parallel_for(0, threads, [](int i) { peer::keep(i); }); });
}

int main() { return peer::serve({{"empty-region", empty_region}}); }
