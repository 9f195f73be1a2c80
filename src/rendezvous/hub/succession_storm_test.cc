// Thousands of random faults against jobs of 64 agents. One environment variable makes the runs
// longer, one repeats a single job.
#include "base/rounds_testing.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

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
      "ended, {} were lost, {} leaders inherited an end\n",
      settings.nodes, sum.faults, sum.at_leader, sum.takeovers, sum.rounds, sum.restarts, sum.ended,
      sum.lost, sum.heirs);
  return sum;
}

TEST(SuccessionStorm, OfSixtyFourNodes) {
  weather(number("LOCKSTEP_STORM_FAULTS", test_rounds(600)), {});
}
TEST(SuccessionStorm, OfFiveNodes) {
  weather(number("LOCKSTEP_STORM_FAULTS", test_rounds(9'400)),
          {.nodes = 5, .min_nodes = 2, .max_nodes = 4, .faults = 30});
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
