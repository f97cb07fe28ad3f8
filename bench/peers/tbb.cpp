// oneTBB: empty regions, and flow graphs of empty tasks. See peer.hpp.
#include "peer.hpp"

#include <deque>

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>
#include <tbb/partitioner.h>

static tbb::global_control limit(const peer::Request &request) {
    return tbb::global_control(tbb::global_control::max_allowed_parallelism, std::size_t(request.threads));
}

// A loop of empty items. `simple_partitioner` makes a task of each item.
template <class Partitioner> static std::vector<double> empty_region(const peer::Request &request) {
    const auto limited = limit(request);
    const int items = int(request.size);
    return request.time(
        [items] { tbb::parallel_for(0, items, [](int i) { peer::keep(i); }, Partitioner()); });
}

// Two empty functions.
static std::vector<double> empty_invoke(const peer::Request &request) {
    const auto limited = limit(request);
    return request.time([] { tbb::parallel_invoke([] { peer::keep(0); }, [] { peer::keep(1); }); });
}

using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;

// Runs a flow graph of tasks of this many steps each; building it is not timed. `link` adds the edges that lead to a
// task and returns whether there are any.
template <class Link> static std::vector<double> tasks(const peer::Request &request, long steps, Link link) {
    const auto limited = limit(request);
    tbb::flow::graph graph;
    std::deque<Node> nodes;
    std::vector<Node *> roots;
    for (long i = 0; i < request.size; i++) {
        nodes.emplace_back(graph, [i, steps](const tbb::flow::continue_msg &) { peer::work(i, steps); });
        if (!link(nodes, i)) roots.push_back(&nodes.back());
    }
    return request.time([&] {
        for (Node *root : roots) root->try_put(tbb::flow::continue_msg());
        graph.wait_for_all();
    });
}

static std::vector<double> independent(const peer::Request &request) {
    return tasks(request, 0, [](std::deque<Node> &, long) { return false; });
}

static std::vector<double> chain(const peer::Request &request) {
    return tasks(request, 0, [](std::deque<Node> &nodes, long i) {
        if (i > 0) tbb::flow::make_edge(nodes[i - 1], nodes[i]);
        return i > 0;
    });
}

// The wavefront, without the edges that follow from other edges.
static std::vector<double> wavefront(const peer::Request &request, long steps) {
    return tasks(request, steps, [](std::deque<Node> &nodes, long task) {
        const long i = task / peer::side, j = task % peer::side;
        // Task (i, j) reads the element that (i, j - 1) changes.
        if (j > 0) tbb::flow::make_edge(nodes[task - 1], nodes[task]);
        // It changes the element that (i - 1, j) changes and, unless j is the last column, (i - 1, j + 1) reads.
        if (i > 0) tbb::flow::make_edge(nodes[task - peer::side + (j + 1 < peer::side)], nodes[task]);
        return task > 0;
    });
}

// The version of the library, in two numbers.
static std::vector<double> version(const peer::Request &) { return {TBB_VERSION_MAJOR, TBB_VERSION_MINOR}; }

int main() {
    return peer::serve({
        {"version", version},
        {"empty-region", empty_region<tbb::auto_partitioner>},
        {"empty-region-static", empty_region<tbb::static_partitioner>},
        {"empty-region-simple", empty_region<tbb::simple_partitioner>},
        {"empty-invoke", empty_invoke},
        {"tasks-independent", independent},
        {"tasks-chain", chain},
        {"tasks-wavefront", [](const peer::Request &request) { return wavefront(request, 0); }},
        {"tasks-wavefront-steps", [](const peer::Request &request) { return wavefront(request, request.columns); }},
    });
}
