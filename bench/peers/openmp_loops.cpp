// OpenMP: loops and reductions. See peer.hpp.
#include "peer.hpp"

#include <limits>

static std::vector<double> nested(const peer::Request &request) {
    const int threads = request.threads;
    const long size = request.size;
    return request.time([threads, size] {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (long i = 0; i < size; i++) peer::tiny(i);
    });
}

static std::vector<double> items(const peer::Request &request) {
    const int threads = request.threads;
    const long size = request.size;
    return request.time([threads, size] {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (long i = 0; i < size; i++) peer::small(i);
    });
}

static std::vector<double> items_dynamic(const peer::Request &request) {
    const int threads = request.threads;
    const long size = request.size;
    return request.time([threads, size] {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1024)
        for (long i = 0; i < size; i++) peer::small(i);
    });
}

// Two items of SIZE steps each.
static std::vector<double> two_items(const peer::Request &request) {
    const int threads = request.threads;
    const long steps = request.size;
    return request.time([threads, steps] {
#pragma omp parallel for num_threads(threads) schedule(static)
        for (long i = 0; i < 2; i++) peer::work(i, steps);
    });
}

static std::vector<double> sum(const peer::Request &request) {
    const int threads = request.threads;
    const std::vector<double> x = peer::fractions(request.size);
    return request.time([threads, &x] {
        double sum = 0;
#pragma omp parallel for simd num_threads(threads) reduction(+ : sum)
        for (std::size_t i = 0; i < x.size(); i++) sum += x[i];
        peer::keep(sum);
    });
}

static std::vector<double> dot(const peer::Request &request) {
    const int threads = request.threads;
    const std::vector<double> x = peer::fractions(request.size), y(x.rbegin(), x.rend());
    return request.time([threads, &x, &y] {
        double sum = 0;
#pragma omp parallel for simd num_threads(threads) reduction(+ : sum)
        for (std::size_t i = 0; i < x.size(); i++) sum += x[i] * y[i];
        peer::keep(sum);
    });
}

static std::vector<double> min(const peer::Request &request) {
    const int threads = request.threads;
    const std::vector<double> x = peer::fractions(request.size);
    return request.time([threads, &x] {
        double min = std::numeric_limits<double>::infinity();
#pragma omp parallel for simd num_threads(threads) reduction(min : min)
        for (std::size_t i = 0; i < x.size(); i++) min = x[i] < min ? x[i] : min;
        peer::keep(min);
    });
}

int main() {
    return peer::serve({
        {"nested", nested},
        {"items", items},
        {"two-items", two_items},
        {"items-dynamic", items_dynamic},
        {"sum", sum},
        {"dot", dot},
        {"min", min},
    });
}
