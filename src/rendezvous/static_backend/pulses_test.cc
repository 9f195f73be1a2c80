#include "rendezvous/static_backend/pulses.h"

#include <gtest/gtest.h>

namespace lockstep::rendezvous::static_backend {
namespace {

TEST(Pulses, SilentAfterSoManyLooksWithoutANewCount) {
  Pulses pulses(2);
  pulses.begin(2);
  pulses.look(1, "1");
  pulses.look(1, "1");
  EXPECT_FALSE(pulses.silent(1));
  pulses.look(1, "2");
  pulses.look(1, "2");
  pulses.look(1, std::nullopt);
  EXPECT_TRUE(pulses.silent(1));
}

TEST(Pulses, WhoHasLeftIsNotSilent) {
  Pulses pulses(1);
  pulses.begin(2);
  for (int look = 0; look < 3; ++look)
    pulses.look(1, std::string(kLeft));
  EXPECT_TRUE(pulses.left(1));
  EXPECT_FALSE(pulses.silent(1));
}

// The place is free until a heartbeat shows up.
TEST(Pulses, NobodyIsMissedInAFreePlace) {
  Pulses pulses(1);
  pulses.begin(2);
  pulses.look(1, std::string(kLeft));
  pulses.vacate(1, 3);
  EXPECT_EQ(pulses.since(1), 3);
  for (int look = 0; look < 3; ++look)
    pulses.look(1, std::nullopt);
  EXPECT_TRUE(pulses.vacant(1));
  EXPECT_FALSE(pulses.silent(1) || pulses.left(1));
  EXPECT_TRUE(pulses.all_gone());
  pulses.look(1, "1");
  EXPECT_FALSE(pulses.vacant(1) || pulses.silent(1) || pulses.all_gone());
  pulses.look(1, "1");
  EXPECT_TRUE(pulses.silent(1));
  pulses.begin(2);
  EXPECT_EQ(pulses.since(1), 3) << "its heartbeats stand where they did";
}

TEST(Pulses, AllAreGone) {
  Pulses pulses(1);
  pulses.begin(4);
  pulses.look(1, std::string(kLeft));
  pulses.look(2, std::nullopt);
  pulses.look(3, "1");
  EXPECT_FALSE(pulses.all_gone());
  pulses.gone(7);
  pulses.gone(-1);
  pulses.gone(3);
  EXPECT_TRUE(pulses.all_gone());
}

}  // namespace
}  // namespace lockstep::rendezvous::static_backend
