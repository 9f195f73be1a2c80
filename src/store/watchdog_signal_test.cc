// The keys of NCCL's watchdogs.
#include "store/watchdog_signal.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::store {
namespace {

const std::string kRank5("\5\0\0\0", 4);

TEST(SignalWatch, NamesTheRankThatTimedOutFirst) {
  Engine engine;
  SignalWatch watch;
  EXPECT_EQ(watch.look(engine), std::nullopt);
  engine.set("/default_pg/0//cuda//0", "id");
  EXPECT_EQ(watch.look(engine), std::nullopt);
  engine.set("/exception_dump", kRank5);
  EXPECT_EQ(watch.look(engine), 5);
}

TEST(SignalWatch, KnowsTheErrorOfAGroupWithoutItsRank) {
  Engine engine;
  SignalWatch watch;
  engine.set("/default_pg/0//cuda//remote_error:0", kRank5);
  EXPECT_EQ(watch.look(engine), -1);
}

TEST(SignalWatch, TakesAValueThatIsNoRank) {
  Engine engine;
  SignalWatch watch;
  engine.set("/exception_dump", "a text of somebody");
  EXPECT_EQ(watch.look(engine), -1);
}

// A look costs nothing while no key is made, and is bounded otherwise.
TEST(SignalWatch, FindsItsKeyAmongManyForeignOnes) {
  Engine engine;
  SignalWatch watch;
  for (int key = 0; key < 50'000; ++key)
    engine.set("/exception_dump/remote/" + std::to_string(key), "x");
  EXPECT_EQ(watch.look(engine), std::nullopt);
  engine.set("/exception_dump", kRank5);
  EXPECT_EQ(watch.look(engine), 5);
  EXPECT_EQ(watch.look(engine), std::nullopt);
}

}  // namespace
}  // namespace lockstep::store
