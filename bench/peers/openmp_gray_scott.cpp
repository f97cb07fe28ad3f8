// OpenMP: Gray-Scott as an expert of OpenMP writes it for a processor with AVX-512. One parallel region for the whole run,
// a static schedule, vector instructions of 512 bits, and no denormal numbers on any thread. See peer.hpp.
#include "peer.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include <immintrin.h>

namespace {

constexpr float du = 0.1f, dv = 0.05f, feed = 0.014f, kill_rate = 0.054f;

constexpr long line = 16; // `float`s in a cache line

// Rows with a border of zeros on all sides. The first cell of each row is at the beginning of a cache line.
class Field {
  public:
    Field(long rows, long columns) : stride((line + columns + line) / line * line) {
        const std::size_t bytes = std::size_t(rows + 2) * stride * sizeof(float);
        cells.reset(static_cast<float *>(std::aligned_alloc(line * sizeof(float), bytes)));
    }
    // A row of the grid, from its first cell; rows -1 and ROWS are the border.
    float *row(long y) const { return cells.get() + (y + 1) * stride + line; }
    // Fills a row and its border with zeros.
    void clear(long y) const { std::fill_n(row(y) - line, stride, 0.0f); }

  private:
    struct Free {
        void operator()(float *p) const { std::free(p); }
    };
    const long stride;
    std::unique_ptr<float[], Free> cells;
};

inline float laplacian(const float *above, const float *here, const float *below, long x) {
    return 0.25f * (above[x - 1] + above[x + 1] + below[x - 1] + below[x + 1]) +
           0.5f * (above[x] + here[x - 1] + here[x + 1] + below[x]) - 3.0f * here[x];
}

void update_row(const Field &u, const Field &v, const Field &next_u, const Field &next_v, long y, long columns) {
    const float *ua = u.row(y - 1), *uh = u.row(y), *ub = u.row(y + 1);
    const float *va = v.row(y - 1), *vh = v.row(y), *vb = v.row(y + 1);
    float *__restrict nu = next_u.row(y), *__restrict nv = next_v.row(y);
#pragma omp simd
    for (long x = 0; x < columns; x++) {
        const float reaction = uh[x] * vh[x] * vh[x];
        nu[x] = uh[x] + (du * laplacian(ua, uh, ub, x) - reaction + feed * (1.0f - uh[x]));
        nv[x] = vh[x] + (dv * laplacian(va, vh, vb, x) + reaction - (feed + kill_rate) * vh[x]);
    }
}

// Computes BATCH steps of a new grid of SIZE rows, and returns the nanoseconds of one of them. The sum of V shows that this is
// the same model.
double run(const peer::Request &request, double *sum_of_v) {
    const long rows = request.size, columns = request.columns, steps = request.batch;
    Field u(rows, columns), v(rows, columns), next_u(rows, columns), next_v(rows, columns);
    const auto least = [](long x) { return x < 0 ? 0 : x; };
    const long top = least(rows * 7 / 16 - 4), bottom = least(rows * 8 / 16 - 4);
    const long left = columns * 7 / 16, right = columns * 8 / 16;
    double ns = 0, sum = 0;
#pragma omp parallel num_threads(request.threads) reduction(+ : sum)
    {
        const unsigned mode = _mm_getcsr();
        _mm_setcsr(mode | 0x8040); // flush to zero, denormals are zero
        Field *from[2] = {&u, &v}, *to[2] = {&next_u, &next_v};
        // The thread that computes a row also touches its memory first.
#pragma omp for schedule(static)
        for (long y = -1; y <= rows; y++) {
            for (const Field *field : {&u, &v, &next_u, &next_v}) field->clear(y);
            if (y < 0 || y == rows) continue;
            for (long x = 0; x < columns; x++) {
                const bool spot = y >= top && y < bottom && x >= left && x < right;
                u.row(y)[x] = spot ? 0 : 1;
                v.row(y)[x] = spot ? 1 : 0;
            }
        }
        const auto begin = peer::Clock::now();
        for (long step = 0; step < steps; step++) {
#pragma omp for schedule(static)
            for (long y = 0; y < rows; y++) update_row(*from[0], *from[1], *to[0], *to[1], y, columns);
            std::swap(from[0], to[0]);
            std::swap(from[1], to[1]);
        }
#pragma omp master
        ns = peer::since(begin);
#pragma omp for schedule(static)
        for (long y = 0; y < rows; y++)
            for (long x = 0; x < columns; x++) sum += from[1]->row(y)[x];
        _mm_setcsr(mode);
    }
    *sum_of_v = sum;
    return ns / double(steps);
}

} // namespace

int main() {
    return peer::serve({
        {"step",
         [](const peer::Request &request) {
             double sum = 0;
             return std::vector<double>{run(request, &sum)};
         }},
        {"sum-of-v",
         [](const peer::Request &request) {
             double sum = 0;
             run(request, &sum);
             return std::vector<double>{sum};
         }},
    });
}
