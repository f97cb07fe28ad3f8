// Task Bench with the tasks of OpenMP: one thread makes them all, and `depend` orders them.
#include "task_bench.hpp"

#include <omp.h>

using namespace task_bench;

static double all_alone(const Graph &graph) {
    double best = 1e300;
    for (long sample = 0; sample < alone_samples; sample++) {
        double sum = 0;
#pragma omp parallel num_threads(graph.threads) reduction(+ : sum)
        {
#pragma omp barrier
            sum += alone();
        }
        best = std::min(best, sum / double(graph.threads));
    }
    return best;
}

static double run(const Graph &graph, std::vector<std::vector<Line>> &rows, std::uint64_t number, long steps,
                  long iterations) {
    const auto begin = Clock::now();
#pragma omp parallel num_threads(graph.threads)
#pragma omp single
    for (long step = 0; step < steps; step++) {
        Line *from = rows[(step + graph.kept - 1) % graph.kept].data(), *to = rows[step % graph.kept].data();
        for (long column = 0; column < graph.width_at(step); column++) {
            const long *needed = graph.needed(step, column).data();
            const long count = step > 0 ? long(graph.needed(step, column).size()) : 0;
#pragma omp task firstprivate(from, to, needed, count, step, column, number, iterations) default(none) \
    depend(iterator(long k = 0 : count), in : from[needed[k]]) depend(out : to[column])
            {
                for (long k = 0; k < count; k++) expect(from[needed[k]].result, number, step - 1, needed[k]);
                keep(compute(iterations));
                to[column].result = result(number, step, column);
            }
        }
    }
    const double ns = since(begin);
    for (long step = std::max(0L, steps - graph.kept); step < steps; step++)
        for (long column = 0; column < graph.width_at(step); column++)
            expect(rows[step % graph.kept][column].result, number, step, column);
    return ns;
}

int main() {
    std::string line, word;
    if (!std::getline(std::cin, line)) return 0;
    const Graph graph(line);
    std::vector<std::vector<Line>> rows(graph.kept, std::vector<Line>(graph.width));
    std::printf("\n");
    std::fflush(stdout);
    long steps, iterations;
    for (std::uint64_t number = 1; std::cin >> word >> steps >> iterations; number++) {
        std::printf("%.3f\n", word == "alone" ? all_alone(graph) : run(graph, rows, number, steps, iterations));
        std::fflush(stdout);
    }
    return 0;
}
