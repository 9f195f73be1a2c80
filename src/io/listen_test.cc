#include "io/listen.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace lockstep::io {
namespace {

// Two threads start at the same moment, as far as two processors allow.
class Together {
 public:
  void arrive() {
    const int round = arrived_++ / 2;
    while (arrived_ / 2 <= round) {
    }
  }

 private:
  std::atomic<int> arrived_ = 0;
};

TEST(Listen, OfTwoThatComeAtOnceOneListens) {
  const int port = open_listener("127.0.0.1", 0, 16)->port;
  constexpr int kRounds = 300;
  std::atomic<int> listening = 0;
  int wrong = 0;
  Together together;
  const auto come = [&](bool counts) {
    for (int round = 0; round < kRounds; ++round) {
      together.arrive();
      const auto listener = open_listener("", port, 16);
      if (listener) ++listening;
      together.arrive();
      if (counts) wrong += listening.exchange(0) == 1 ? 0 : 1;
    }
  };
  std::thread other(come, false);
  come(true);
  other.join();
  EXPECT_EQ(wrong, 0) << "of " << kRounds;
}

TEST(Listen, APortThatIsTakenIsToldAtOnce) {
  const auto first = open_listener("127.0.0.1", 0, 16);
  const auto second = open_listener("127.0.0.1", first->port, 16);
  ASSERT_FALSE(second);
  EXPECT_EQ(code_of(second), Errc::already_exists);
}

}  // namespace
}  // namespace lockstep::io
