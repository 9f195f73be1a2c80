// Thousands of random faults against jobs of 64 agents. One environment variable makes the runs
// longer, one repeats a single job.
#include "base/rounds_testing.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "succession_storm_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using testing::Storm;
using testing::StormSettings;

int number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

// The storm must reach what it is to test, and jobs must outlive most of it.
void judge(const Storm::Counts& sum) {
  const int jobs = sum.ended + sum.lost;
  EXPECT_GT(sum.at_leader, sum.faults / 4);
  EXPECT_GT(sum.takeovers, sum.faults / 20);
  EXPECT_GT(sum.restarts, sum.faults / 50);
  EXPECT_GT(sum.ended, jobs / 4);
  // Five nodes often lose a quorum at once. Else nodes must find each other. Two groups of almost
  // half of the nodes sometimes walk along the list one behind the other.
  EXPECT_LE(sum.lost - sum.doomed, jobs / 8);
  EXPECT_LE(sum.slowest, std::chrono::minutes(1));
}

// Runs jobs until `faults` faults have happened.
Storm::Counts weather(int faults, StormSettings settings) {
  Storm::Counts sum;
  const int only = number("LOCKSTEP_STORM_SEED", 0);
  for (std::uint32_t seed = 1; sum.faults < faults; ++seed) {
    settings.seed = only > 0 ? static_cast<std::uint32_t>(only) : seed;
    Storm storm(settings);
    storm.run();
    sum.add(storm.counts());
    EXPECT_EQ(storm.fault(), "") << "seed " << settings.seed << ", " << settings.nodes << " nodes"
                                 << storm.trace();
    if (!storm.fault().empty() || only > 0) break;
  }
  fmt::print(
      "{} nodes: {} faults, {} at the leader, {} takeovers, {} rounds, {} restarts, {} jobs "
      "ended, {} were lost ({} without a quorum), {} leaders inherited an "
      "end, slowest {} ms\n",
      settings.nodes, sum.faults, sum.at_leader, sum.takeovers, sum.rounds, sum.restarts, sum.ended,
      sum.lost, sum.doomed, sum.heirs, sum.slowest.count());
  if (only == 0) judge(sum);
  return sum;
}

TEST(SuccessionStorm, OfSixtyFourNodes) {
  weather(number("LOCKSTEP_STORM_FAULTS", test_rounds(600)), {});
}
// The host was stopped in the last round, and most nodes had finished. At the wake-up the hub took
// the silent nodes for nodes that had left, and told the host's node that the job has ended well.
// The silent nodes were in a later round by then.
TEST(SuccessionStorm, AHostThatWakesWithoutAQuorumEndsNothing) {
  Storm storm({.seed = 113});
  storm.run();
  EXPECT_EQ(storm.fault(), "") << storm.trace();
}
TEST(SuccessionStorm, OfFiveNodes) {
  weather(number("LOCKSTEP_STORM_FAULTS", test_rounds(9'400)),
          {.nodes = 5, .min_nodes = 2, .max_nodes = 4, .faults = 30});
}
TEST(SuccessionStorm, OfFiveNodesWithOneEndpoint) {
  weather(number("LOCKSTEP_STORM_FAULTS", test_rounds(4'700)),
          {.nodes = 5, .min_nodes = 2, .max_nodes = 4, .faults = 30, .lists_hosts = true});
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
