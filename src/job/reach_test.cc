#include "job/reach.h"

#include "host/own_addresses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace lockstep::job {
namespace {

using Addresses = std::vector<std::string>;

using Reached = ReachTrial::Reached;

Reached reached(io::Loop& loop, const std::vector<ReachTarget>& targets) {
  std::optional<Reached> found;
  const ReachTrial trial(loop, targets, std::chrono::seconds(3),
                         [&](const Reached& told) { found = told; });
  while (!found)
    loop.run_once();
  return *found;
}

TEST(Reach, AnAddressCountsOnlyWhereTheSecretIsHeard) {
  io::Loop loop;
  const auto place = ReachedPlace::open(loop, "the secret");
  ASSERT_TRUE(place) << place.error().message;
  const int port = (*place)->port();
  EXPECT_EQ(reached(loop, {{{"nonsense", "127.0.0.1"}, port, "the secret"}}),
            (Reached{{"127.0.0.1"}}));
  EXPECT_EQ(reached(loop, {{{"127.0.0.1"}, port, "another one"}}), Reached{{}});
  EXPECT_EQ(reached(loop, {{{"127.0.0.1"}, port, "the secret, longer"}}), Reached{{}});
}

// Two hosts call each other: each must answer while its own calls are open.
TEST(Reach, AllTargetsAreCalledAtOnce) {
  io::Loop loop;
  const auto one = ReachedPlace::open(loop, "one");
  const auto two = ReachedPlace::open(loop, "two");
  ASSERT_TRUE(one && two);
  EXPECT_EQ(reached(loop, {{{"127.0.0.1"}, (*one)->port(), "one"},
                           {{"127.0.0.1"}, (*one)->port(), "two"},
                           {{"127.0.0.2", "127.0.0.1"}, (*two)->port(), "two"}}),
            (Reached{{"127.0.0.1"}, {}, {"127.0.0.2", "127.0.0.1"}}));
}

TEST(Reach, NobodyListens) {
  io::Loop loop;
  EXPECT_EQ(reached(loop, {{{"127.0.0.1"}, 1, "s"}}), Reached{{}});
  EXPECT_EQ(reached(loop, {{{}, 1, "s"}}), Reached{{}});
  EXPECT_EQ(reached(loop, {}), Reached{});
}

TEST(Reach, TheLoopbackIsTheLastOfOwnAddresses) {
  const Addresses own = host::own_addresses();
  const auto at = std::find(own.begin(), own.end(), "127.0.0.1");
  ASSERT_NE(at, own.end());
  for (auto before = own.begin(); before != at; ++before)
    EXPECT_FALSE(before->starts_with("127.")) << *before;
}

}  // namespace
}  // namespace lockstep::job
