// Task Bench with MPI: each process has some of the columns. In each step it begins to receive what its tasks need from other processes and to
// send what theirs need, a message for each dependency, waits for all of that, and computes.
#include "task_bench.hpp"

#include <mpi.h>
#include <unistd.h>

using namespace task_bench;

static int rank_, processes;

// Sends numbers of process 0 to all. Between runs the others sleep instead of waiting busily, because other programs are measured then.
static void broadcast(long *numbers, int count) {
    MPI_Request request;
    MPI_Ibcast(numbers, count, MPI_LONG, 0, MPI_COMM_WORLD, &request);
    for (int done = 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done;)
        if (rank_ > 0) usleep(200);
}

// A dependency of a task of this process on a task of another one, or the other way round.
struct Message {
    long from, to;
    int other;
};

// Of one step of the period.
struct Step {
    std::vector<Message> receives, sends;
};

struct Process {
    const Graph &graph;
    long first, end;
    std::vector<Step> period;
    // The results of the own columns, and what has come for each dependency of each column.
    std::vector<Line> before, after;
    std::vector<std::vector<std::uint64_t>> inputs;
    std::vector<MPI_Request> requests;

    explicit Process(const Graph &graph)
        : graph(graph), first(graph.width * rank_ / processes), end(graph.width * (rank_ + 1) / processes),
          period(graph.period), before(graph.width), after(graph.width), inputs(graph.width) {
        for (long step = 0; step < graph.period; step++)
            for (long to = 0; to < graph.width; to++)
                for (long from : graph.needed(step, to)) {
                    const int receiver = owner(to), sender = owner(from);
                    if (receiver == sender) continue;
                    if (receiver == rank_) period[step].receives.push_back({from, to, sender});
                    if (sender == rank_) period[step].sends.push_back({from, to, receiver});
                }
        for (auto &input : inputs) input.resize(graph.width);
    }

    int owner(long column) const {
        int process = 0;
        while (column >= graph.width * (process + 1) / processes) process++;
        return process;
    }

    void exchange(long step) {
        const long width = graph.width_at(step);
        const Step &messages = period[step % graph.period];
        requests.clear();
        const auto next = [&] {
            requests.emplace_back();
            return &requests.back();
        };
        for (const Message &m : messages.receives)
            if (m.to < width)
                MPI_Irecv(&inputs[m.to][m.from], 1, MPI_UINT64_T, m.other, int(m.to * graph.width + m.from),
                          MPI_COMM_WORLD, next());
        for (const Message &m : messages.sends)
            if (m.to < width)
                MPI_Isend(&before[m.from].result, 1, MPI_UINT64_T, m.other, int(m.to * graph.width + m.from),
                          MPI_COMM_WORLD, next());
        MPI_Waitall(int(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    }

    double run(std::uint64_t number, long steps, long iterations) {
        MPI_Barrier(MPI_COMM_WORLD);
        const auto begin = Clock::now();
        for (long step = 0; step < steps; step++) {
            if (step > 0) exchange(step);
            for (long column = first; column < std::min(end, graph.width_at(step)); column++) {
                if (step > 0)
                    for (long from : graph.needed(step, column)) {
                        const bool own = first <= from && from < end;
                        expect(own ? before[from].result : inputs[column][from], number, step - 1, from);
                    }
                keep(compute(iterations));
                after[column].result = result(number, step, column);
            }
            before.swap(after);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        const double ns = since(begin);
        for (long column = first; column < std::min(end, graph.width_at(steps - 1)); column++)
            expect(before[column].result, number, steps - 1, column);
        return ns;
    }
};

static double all_alone() {
    double best = 1e300;
    for (long sample = 0; sample < alone_samples; sample++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double mine = alone(), sum = 0;
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        best = std::min(best, sum / processes);
    }
    return best;
}

static void answer(const std::string &text) {
    if (rank_ > 0) return;
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
}

// The first line of process 0.
static std::string first_line() {
    std::string line;
    if (rank_ == 0) std::getline(std::cin, line);
    long length = long(line.size());
    broadcast(&length, 1);
    line.resize(length);
    MPI_Bcast(&line[0], int(length), MPI_CHAR, 0, MPI_COMM_WORLD);
    return line;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    const std::string line = first_line();
    if (!line.empty()) {
        const Graph graph(line);
        Process process(graph);
        answer("");
        for (std::uint64_t number = 1;; number++) {
            // Whether there is a request, whether it is a run, its steps and its iterations.
            long request[4] = {0, 0, 0, 0};
            std::string word;
            if (rank_ == 0 && std::cin >> word >> request[2] >> request[3]) {
                request[0] = 1;
                request[1] = word == "run";
            }
            broadcast(request, 4);
            if (request[0] == 0) break;
            const double ns = request[1] ? process.run(number, request[2], request[3]) : all_alone();
            answer(std::to_string(ns));
        }
    }
    MPI_Finalize();
    return 0;
}
