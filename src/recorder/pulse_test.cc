#include "recorder/pulse.h"

#include <gtest/gtest.h>

namespace lockstep::recorder {
namespace {

Entry entry(std::int64_t sequence, bool active) {
  return {.group = "0",
          .sequence = sequence,
          .created_ns = 100 * sequence,
          .moved_ns = 100 * sequence + (active ? 0 : 50),
          .active = active};
}

TEST(Pulse, StandsStillUntilACollectiveBeginsOrEnds) {
  const Pulse before = pulse_of({.entries = {entry(1, false), entry(2, true)}});
  EXPECT_TRUE(before.inside);
  EXPECT_EQ(before.moved_ns, 200);
  EXPECT_EQ(pulse_of({.entries = {entry(1, false), entry(2, true)}}).mark, before.mark);
  const Pulse ended = pulse_of({.entries = {entry(1, false), entry(2, false)}});
  EXPECT_NE(ended.mark, before.mark);
  EXPECT_FALSE(ended.inside);
  EXPECT_EQ(ended.moved_ns, 250);
  EXPECT_NE(pulse_of({.entries = {entry(1, false), entry(2, true), entry(3, true)}}).mark,
            before.mark);
  EXPECT_FALSE(pulse_of({}).inside);
}

TEST(Pulse, ARecorderThatNotesNoEndsProvesNothing) {
  Dump dump;
  for (int i = 1; i <= 63; ++i)
    dump.entries.push_back(entry(i, true));
  EXPECT_TRUE(pulse_of(dump).inside);
  dump.entries.push_back(entry(64, true));
  EXPECT_FALSE(pulse_of(dump).inside);
  dump.entries.front().active = false;
  EXPECT_TRUE(pulse_of(dump).inside);
}

}  // namespace
}  // namespace lockstep::recorder
