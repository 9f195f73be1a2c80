#include "host/numa.h"

#include "host/cpus.h"
#include "host/fake_tree_testing.h"

#include <fmt/core.h>

#include <numeric>

namespace lockstep::host {
namespace {

// Two sockets with two nodes each, four cores per node with two threads (core c: CPUs c and c+16),
// and caches shared by two cores.
Topology machine() {
  Topology topology;
  for (int cpu = 0; cpu < 32; ++cpu) {
    const int core = cpu % 16;
    topology.nodes[core / 4].push_back(cpu);
    topology.socket_of[cpu] = core / 8;
    topology.core_of[cpu] = core;
    topology.cache_of[cpu] = core / 2 * 2;
  }
  return topology;
}

std::string plan(BindMode mode, int rank, int workers, std::vector<int> gpu_nodes,
                 const char* allowed = "0-31") {
  const BindRequest request{mode, rank, workers, std::move(gpu_nodes), *parse_cpu_list(allowed)};
  const auto cpus = cpus_for_worker(machine(), request);
  return cpus ? print_cpu_list(*cpus) : "error: " + cpus.error().message;
}

TEST(Numa, Node) {
  EXPECT_EQ(plan(BindMode::node, 1, 2, {0, 2}), "8-11,24-27");
  EXPECT_EQ(plan(BindMode::node, 0, 2, {-1, 2}), "0-3,16-19");
  EXPECT_EQ(plan(BindMode::node, 0, 1, {3}, "12,13,14"), "12-14");
}

TEST(Numa, Socket) {
  EXPECT_EQ(plan(BindMode::socket, 0, 1, {3}), "8-15,24-31");
  EXPECT_EQ(plan(BindMode::socket, 0, 1, {3}, "0-7,12-15"), "12-15");  // node 2 has no free CPU
}

TEST(Numa, ExclusiveDividesWholeCores) {
  EXPECT_EQ(plan(BindMode::exclusive, 0, 2, {1, 1}), "4-5,20-21");
  EXPECT_EQ(plan(BindMode::exclusive, 1, 2, {1, 1}), "6-7,22-23");
  EXPECT_EQ(plan(BindMode::exclusive, 0, 4, {1, 0, 1, 1}), "4-5,20-21");
  EXPECT_EQ(plan(BindMode::exclusive, 1, 4, {1, 0, 1, 1}), "0-3,16-19");
  EXPECT_EQ(plan(BindMode::exclusive, 2, 4, {1, 0, 1, 1}), "6,22");
  EXPECT_EQ(plan(BindMode::exclusive, 3, 4, {1, 0, 1, 1}), "7,23");
}

TEST(Numa, ExclusiveSharesNeverOverlapAndLoseNothing) {
  for (int devices = 1; devices <= 4; ++devices) {
    std::vector<int> seen;
    for (int rank = 0; rank < devices; ++rank) {
      const auto cpus =
          cpus_for_worker(machine(), {BindMode::exclusive, rank, devices,
                                      std::vector<int>(devices, 2), *parse_cpu_list("0-31")});
      ASSERT_TRUE(cpus);
      seen.insert(seen.end(), cpus->begin(), cpus->end());
    }
    EXPECT_EQ(seen.size(), 8U);
    EXPECT_EQ(print_cpu_list(seen), "8-11,24-27");
  }
}

TEST(Numa, ExclusiveNeedsACoreForEach) {
  EXPECT_EQ(plan(BindMode::exclusive, 0, 2, {0, 0}, "0,16,8"),
            "error: --numa-binding=exclusive: NUMA node 0 has 1 physical cores for 2 workers");
}

TEST(Numa, CoreComplexesAreDistinctWhileTheyLast) {
  EXPECT_EQ(plan(BindMode::core_complex, 0, 3, {0, 0, 0}), "0-1,16-17");
  EXPECT_EQ(plan(BindMode::core_complex, 1, 3, {0, 0, 0}), "2-3,18-19");
  EXPECT_EQ(plan(BindMode::core_complex, 2, 3, {0, 0, 0}), "0-1,16-17");
  EXPECT_EQ(plan(BindMode::core_complex, 0, 1, {0}, "0,2,3"), "2-3");  // the fuller group first
}

TEST(Numa, WithoutGpusRanksSpreadInBlocks) {
  EXPECT_EQ(plan(BindMode::node, 0, 8, {}), "0-3,16-19");
  EXPECT_EQ(plan(BindMode::node, 1, 8, {}), "0-3,16-19");
  EXPECT_EQ(plan(BindMode::node, 7, 8, {}), "12-15,28-31");
  EXPECT_EQ(plan(BindMode::exclusive, 7, 8, {}), "14-15,30-31");
  EXPECT_EQ(plan(BindMode::node, 1, 2, {}, "0-3,12-15"), "12-15");
}

TEST(Numa, Errors) {
  EXPECT_EQ(plan(BindMode::node, 2, 3, {0, 0}),
            "error: --numa-binding: local rank 2 has no GPU of its own (2 visible)");
  EXPECT_EQ(plan(BindMode::node, 0, 1, {2}, "0-3"),
            "error: --numa-binding: none of NUMA node 2's CPUs may be used by this process");
  EXPECT_EQ(plan(BindMode::node, 0, 1, {9}),
            "error: --numa-binding: none of NUMA node 9's CPUs may be used by this process");
  EXPECT_EQ(plan(BindMode::node, 0, 1, {}, "99"),
            "error: --numa-binding: no NUMA node has a CPU this process may use");
}

class NumaTree : public FakeTree {
 protected:
  void put_cpu(int cpu, const char* socket, const char* siblings, const char* l3) const {
    const std::string dir = fmt::format("/sys/devices/system/cpu/cpu{}", cpu);
    put(dir + "/topology/physical_package_id", socket);
    put(dir + "/topology/thread_siblings_list", siblings);
    put(dir + "/cache/index0/level", "1\n");
    put(dir + "/cache/index0/type", "Data\n");
    put(dir + "/cache/index0/shared_cpu_list", siblings);
    put(dir + "/cache/index3/level", "3\n");
    put(dir + "/cache/index3/type", "Unified\n");
    put(dir + "/cache/index3/shared_cpu_list", l3);
  }
};

TEST_F(NumaTree, ReadsTheMachine) {
  put("/sys/devices/system/node/node0/cpulist", "0-1\n");
  put("/sys/devices/system/node/node1/cpulist", "2-3\n");
  put("/sys/devices/system/node/node2/cpulist", "\n");  // memory only
  put("/sys/devices/system/node/possible", "0-2\n");
  put_cpu(0, "0\n", "0-1\n", "0-1\n");
  put_cpu(1, "0\n", "0-1\n", "0-1\n");
  put_cpu(2, "1\n", "2\n", "2-3\n");
  put_cpu(3, "1\n", "3\n", "2-3\n");
  const auto topology = read_topology(root_);
  ASSERT_TRUE(topology);
  EXPECT_EQ(topology->nodes.at(1), (std::vector<int>{2, 3}));
  EXPECT_TRUE(topology->nodes.at(2).empty());
  EXPECT_EQ(topology->socket_of, (std::map<int, int>{{0, 0}, {1, 0}, {2, 1}, {3, 1}}));
  EXPECT_EQ(topology->core_of, (std::map<int, int>{{0, 0}, {1, 0}, {2, 2}, {3, 3}}));
  EXPECT_EQ(topology->cache_of, (std::map<int, int>{{0, 0}, {1, 0}, {2, 2}, {3, 2}}));
}

TEST_F(NumaTree, KernelWithoutNumaIsOneNode) {
  EXPECT_FALSE(read_topology(root_));
  put("/sys/devices/system/cpu/online", "0-1\n");
  const auto topology = read_topology(root_);
  ASSERT_TRUE(topology);
  EXPECT_EQ(topology->nodes.at(0), (std::vector<int>{0, 1}));
  EXPECT_EQ(topology->cache_of.at(1), 0);
  EXPECT_EQ(topology->core_of.at(1), 1);
}

TEST(Numa, ThisMachineCanBePlanned) {
  const auto topology = read_topology("");
  if (!topology) GTEST_SKIP() << topology.error().message;
  for (const BindMode mode :
       {BindMode::node, BindMode::socket, BindMode::exclusive, BindMode::core_complex})
    EXPECT_TRUE(cpus_for_worker(*topology, {mode, 0, 1, {}, *allowed_cpus()}));
}

}  // namespace
}  // namespace lockstep::host
