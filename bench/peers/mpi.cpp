// What processes do with MPI by hand. `mpirun` starts this program:
//
//     mpi WORKLOAD SAMPLES BATCH
//
// One process prints SAMPLES figures on a line. The workloads have the names and the units of `workloads/nodes.rs`.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <unistd.h>
#include <vector>

static int rank, processes;

static double clock_now(clockid_t clock) {
    timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

// Prints the microseconds of one operation for each sample, after a batch that does not count. All processes begin together.
static void measure(int samples, int batch, const std::function<void()> &operation) {
    for (int sample = -1; sample < samples; sample++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (int i = 0; i < batch; i++) operation();
        if (rank == 0 && sample >= 0) std::printf("%.6f ", (MPI_Wtime() - begin) * 1e6 / batch);
    }
}

// Steps of a stencil of three points. Each process has its part, with a cell of its neighbours on either side.
static void stencil(long cells, int samples, int batch) {
    long first = cells * rank / processes, length = cells * (rank + 1) / processes - first;
    std::vector<float> before(length + 2, 1.0f), after(length + 2, 1.0f);
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < processes ? rank + 1 : MPI_PROC_NULL;
    measure(samples, batch, [&] {
        float *old = before.data(), *fresh = after.data();
        MPI_Sendrecv(old + 1, 1, MPI_FLOAT, left, 0, old + length + 1, 1, MPI_FLOAT, right, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(old + length, 1, MPI_FLOAT, right, 0, old, 1, MPI_FLOAT, left, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        if (rank == 0) old[0] = old[1];
        if (rank == processes - 1) old[length + 1] = old[length];
        for (long i = 1; i <= length; i++) fresh[i] = 0.25f * old[i - 1] + 0.5f * old[i] + 0.25f * old[i + 1];
        before.swap(after);
    });
}

// Each process writes its part of 8 MB, and gets the parts of all others.
static void all_gather(int samples, int batch) {
    std::size_t part = (8 << 20) / processes;
    std::vector<char> all(part * processes);
    measure(samples, batch, [&] {
        std::memset(all.data() + rank * part, 1, part);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_BYTE, all.data(), part, MPI_BYTE, MPI_COMM_WORLD);
    });
}

// The last process waits for a second for the first. It prints the seconds of processor time that this takes, or how many
// milliseconds it is late.
static void wait_a_second(bool late, int samples) {
    for (int sample = 0; sample < samples; sample++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double sent = 0, used = clock_now(CLOCK_PROCESS_CPUTIME_ID);
        if (rank == 0) {
            sleep(1);
            sent = clock_now(CLOCK_MONOTONIC);
            MPI_Send(&sent, 1, MPI_DOUBLE, processes - 1, 0, MPI_COMM_WORLD);
        } else if (rank == processes - 1) {
            MPI_Recv(&sent, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            double now = clock_now(CLOCK_MONOTONIC);
            std::printf("%.6f ", late ? (now - sent) * 1e3 : clock_now(CLOCK_PROCESS_CPUTIME_ID) - used);
        }
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    std::string workload = argc == 4 ? argv[1] : "";
    int samples = argc == 4 ? std::atoi(argv[2]) : 0, batch = argc == 4 ? std::atoi(argv[3]) : 0;
    int status = 0;
    if (workload == "start") {
        if (rank == 0) std::printf("0");
    } else if (workload == "barrier") {
        measure(samples, batch, [] { MPI_Barrier(MPI_COMM_WORLD); });
    } else if (workload == "stencil-1024") {
        stencil(1024, samples, batch);
    } else if (workload == "stencil-1048576") {
        stencil(1 << 20, samples, batch);
    } else if (workload == "all-gather") {
        all_gather(samples, batch);
    } else if (workload == "waiting-cpu") {
        wait_a_second(false, samples);
    } else if (workload == "waiting-late") {
        wait_a_second(true, samples);
    } else {
        std::fprintf(stderr, "no workload is called `%s`\n", workload.c_str());
        status = 1;
    }
    std::fflush(stdout);
    MPI_Finalize();
    return status;
}
