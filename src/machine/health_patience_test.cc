#include "machine/health_patience.h"

#include <gtest/gtest.h>

namespace lockstep::machine {
namespace {

using std::chrono::seconds;
using Word = HealthPatience::Word;

HealthFinding bad(std::string what, Ailment ailment) {
  return {HealthFinding::Kind::bad, std::move(what), ailment};
}

const HealthFinding kFabric = bad("the GPUs can't be opened: 802", Ailment::no_fabric);
const HealthFinding kDriver = bad("the NVIDIA driver does not answer", Ailment::no_driver);
const HealthFinding kDisk = bad("the disk can't be written to", Ailment::lasting);
const HealthFinding kNote{HealthFinding::Kind::note, "a slow line"};

TEST(HealthPatience, WhatIsHealthyIsNotWaitedFor) {
  HealthPatience patience(seconds(300));
  EXPECT_EQ(patience.judge({kNote}, seconds(1)).kind, Word::Kind::healthy);
}

TEST(HealthPatience, AFabricManagerThatComesUpIn47SecondsIsWaitedFor) {
  HealthPatience patience(seconds(300));
  for (int second = 20; second < 67; second += 5) {
    const Word word = patience.judge({kNote, kFabric}, seconds(second));
    EXPECT_EQ(word.kind, Word::Kind::wait);
    EXPECT_EQ(word.text,
              "waits for the fabric manager of the NVSwitches, 300 s at most: the GPUs can't be "
              "opened: 802");
  }
  EXPECT_EQ(patience.judge({kNote}, seconds(67)).kind, Word::Kind::healthy);
}

// One limit for all waiting: a slow driver leaves less time for the fabric.
TEST(HealthPatience, FiveMinutesAfterTheFirstFailedCheckTheMachineIsSick) {
  HealthPatience patience(seconds(300));
  const Word first = patience.judge({kDriver}, seconds(100));
  EXPECT_EQ(first.text,
            "waits for the NVIDIA driver, 300 s at most: the NVIDIA driver does not answer");
  EXPECT_EQ(patience.judge({kFabric}, seconds(399)).kind, Word::Kind::wait);
  const Word last = patience.judge({kFabric}, seconds(400));
  EXPECT_EQ(last.kind, Word::Kind::sick);
  EXPECT_EQ(last.text, "the GPUs can't be opened: 802, for 300 s");
}

TEST(HealthPatience, WhatDoesNotPassIsSickAtOnce) {
  HealthPatience patience(seconds(300));
  const Word word = patience.judge({kFabric, kDisk}, seconds(1));
  EXPECT_EQ(word.kind, Word::Kind::sick);
  EXPECT_EQ(word.text, "the disk can't be written to");
  EXPECT_EQ(HealthPatience(seconds(0)).judge({kFabric}, seconds(1)).kind, Word::Kind::sick);
}

}  // namespace
}  // namespace lockstep::machine
