#include "job/reach.h"

#include "host/own_addresses.h"

#include <gtest/gtest.h>

#include <thread>

namespace lockstep::job {
namespace {

using Addresses = std::vector<std::string>;

Addresses try_on_loop(io::Loop& loop, const Addresses& addresses, int port,
                      const std::string& secret) {
  Addresses reached;
  bool done = false;
  std::thread guest([&] {
    reached = reached_addresses(addresses, port, secret, std::chrono::milliseconds(3000));
    loop.post([&] { done = true; });
  });
  while (!done)
    loop.run_once();
  guest.join();
  return reached;
}

TEST(Reach, AnAddressCountsOnlyWhereTheSecretIsHeard) {
  io::Loop loop;
  const auto place = ReachedPlace::open(loop, "the secret");
  ASSERT_TRUE(place) << place.error().message;
  const int port = (*place)->port();
  EXPECT_EQ(try_on_loop(loop, {"nonsense", "127.0.0.1"}, port, "the secret"),
            Addresses{"127.0.0.1"});
  EXPECT_EQ(try_on_loop(loop, {"127.0.0.1"}, port, "another one"), Addresses{});
  EXPECT_EQ(try_on_loop(loop, {"127.0.0.1"}, port, "the secret, longer"), Addresses{});
}

TEST(Reach, NobodyListens) {
  EXPECT_EQ(reached_addresses({"127.0.0.1"}, 1, "s", std::chrono::milliseconds(1000)), Addresses{});
  EXPECT_EQ(reached_addresses({}, 1, "s", std::chrono::milliseconds(1000)), Addresses{});
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
