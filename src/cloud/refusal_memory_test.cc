#include "cloud/refusal_memory.h"

#include "cloud/renting_case_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace lockstep::cloud {
namespace {

using testing::kind_rules;
using testing::place;
using testing::refusal;
using testing::SimRecords;
using testing::SimWeb;
using testing::SimWorld;

class RefusalMemoryTest : public ::testing::Test {
 protected:
  SimWorld world{1, kind_rules()};
  SimWeb web{world, true};
  Journal journal{std::make_unique<SimRecords>(world)};
  std::vector<std::string> told;
  RentParts parts{journal, web, web, [](auto) { return nullptr; },
                  [this](const RentEvent& event) { told.push_back(event.text); }};
  RefusalMemory memory{parts};
  Offer offer = place("r1", "r1-a", 1.0);
};

TEST_F(RefusalMemoryTest, OneUnknownCodeIsToleratedAndTheSecondStops) {
  EXPECT_EQ(memory.refused(offer, refusal(Refusal::unknown, "Odd")).what, Tried::What::next);
  const Tried second = memory.refused(offer, refusal(Refusal::unknown, "Odd"));
  EXPECT_EQ(second.what, Tried::What::stop);
  EXPECT_EQ(second.error.code, Errc::invalid_input);
  EXPECT_EQ(second.error.message, "sim g1 in r1-a: no (Odd)");
  EXPECT_EQ(told, std::vector<std::string>(2, second.error.message));
}

TEST_F(RefusalMemoryTest, WithoutSpotTheAccountStillHasMachinesOnDemand) {
  Offer spot = offer;
  spot.spot = true;
  EXPECT_EQ(memory.refused(spot, refusal(Refusal::spot_out, "NoRole")).what, Tried::What::next);
  EXPECT_TRUE(memory.is_out(spot));
  EXPECT_FALSE(memory.is_out(offer));
  EXPECT_EQ(memory.refused(offer, refusal(Refusal::provider_out, "NoKey")).what, Tried::What::next);
  EXPECT_TRUE(memory.is_out(offer));
  EXPECT_TRUE(memory.learned().empty()) << "the account may be better tomorrow";
}

TEST_F(RefusalMemoryTest, CapacityIsOfAZoneAndAQuotaOfARegion) {
  Offer other = offer;
  other.zone = "r1-b";
  const auto blocked = [&](const Offer& one, std::int64_t when) {
    const auto known = journal.blocks(when);
    return std::any_of(known->begin(), known->end(),
                       [&](const Block& block) { return blocks(block, one, when); });
  };
  LaunchOutcome full = refusal(Refusal::next_zone, "Full");
  full.zones_to_try = {"r1-c"};
  EXPECT_EQ(memory.refused(offer, full).zones_to_try, full.zones_to_try);
  EXPECT_TRUE(blocked(offer, world.now));
  EXPECT_FALSE(blocked(other, world.now));
  EXPECT_FALSE(blocked(offer, world.now + kCapacityBlockMs + 1));
  (void)memory.refused(offer, refusal(Refusal::next_region, "Quota"));
  EXPECT_TRUE(blocked(other, world.now + kCapacityBlockMs + 1));
}

// A full disk stops the renting: the next command would ask the same zone again.
TEST_F(RefusalMemoryTest, WhatTheJournalCannotKeepStops) {
  world.rules.full = 1;
  const Tried tried = memory.refused(offer, refusal(Refusal::next_zone, "Full"));
  EXPECT_EQ(tried.what, Tried::What::stop);
  EXPECT_EQ(tried.error.code, Errc::exhausted);
}

TEST_F(RefusalMemoryTest, SilenceIsForThisCommandAloneAndAStopTeachesNothing) {
  EXPECT_EQ(memory.silent(offer, "503").what, Tried::What::next);
  EXPECT_EQ(memory.last().message, "sim g1 in r1-a: 503");
  ASSERT_EQ(memory.learned().size(), 1U);
  EXPECT_TRUE(blocks(memory.learned().front(), offer, world.now));
  EXPECT_TRUE(journal.blocks(world.now)->empty());
  world.stopped = true;
  const Tried stopped = memory.silent(place("r2", "r2-a", 1.0), "503");
  EXPECT_EQ(stopped.what, Tried::What::stop);
  EXPECT_EQ(stopped.error.code, Errc::canceled);
  EXPECT_EQ(memory.learned().size(), 1U);
}

}  // namespace
}  // namespace lockstep::cloud
