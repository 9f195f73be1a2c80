#include "rows/slots.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::rows {
namespace {

std::vector<std::string> gpus_of(const SlotRequest& request) {
  std::vector<std::string> gpus;
  for (const Slot& slot : slots_of(request).value_or(std::vector<Slot>()))
    gpus.push_back(slot.gpus.value_or("-"));
  return gpus;
}
using Gpus = std::vector<std::string>;

TEST(Slots, AGpuIsASlot) {
  EXPECT_EQ(gpus_of({.gpus = {"0", "1", "2"}}), (Gpus{"0", "1", "2"}));
}

TEST(Slots, ARowOfSeveralWorkersHasAsManyGpus) {
  EXPECT_EQ(gpus_of({.gpus = {"0", "1", "2", "3", "4"}, .workers = 2}), (Gpus{"0,1", "2,3"}));
  EXPECT_EQ(gpus_of({.gpus = {"4", "5"}, .gpus_per_job = 1, .workers = 2}), (Gpus{"4", "5"}));
}

TEST(Slots, WithoutGpusOneRowRunsAtOnce) {
  EXPECT_EQ(gpus_of({.workers = 4}), Gpus{"-"});
  EXPECT_EQ(gpus_of({.gpus = {"0", "1"}, .gpus_per_job = 0}), Gpus{"-"});
  // A row that sees all GPUs runs alone.
  EXPECT_EQ(gpus_of({.gpus = {"0", "1"}, .gpus_per_job = 0, .at_once = 4}), Gpus{"-"});
}

TEST(Slots, HostsShareAtOnce) {
  const auto share = [](std::int64_t node) {
    return gpus_of({.at_once = 5, .node = node, .nodes = 3}).size();
  };
  EXPECT_EQ(share(0), 2U);
  EXPECT_EQ(share(1), 2U);
  EXPECT_EQ(share(2), 1U);
  EXPECT_TRUE(gpus_of({.at_once = 1, .node = 1, .nodes = 2}).empty());
  EXPECT_EQ(gpus_of({.gpus = {"0", "1", "2"}, .at_once = 2}), (Gpus{"0", "1"}));
  EXPECT_EQ(gpus_of({.gpus = {"0"}, .at_once = 8}), Gpus{"0"});
}

TEST(Slots, TooFewGpusAreRefused) {
  EXPECT_EQ(code_of(slots_of({.gpus = {"0"}, .gpus_per_job = 2})), Errc::invalid_input);
  EXPECT_EQ(code_of(slots_of({.gpus_per_job = 1})), Errc::invalid_input);
  EXPECT_EQ(code_of(slots_of({.gpus_per_job = -1})), Errc::invalid_input);
  EXPECT_EQ(code_of(slots_of({.at_once = 0})), Errc::invalid_input);
}

}  // namespace
}  // namespace lockstep::rows
