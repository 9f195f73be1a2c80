// Walks through all states of a small job with succession.
#include "base/rounds_testing.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "succession_walk_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using testing::WalkBounds;
using testing::WalkState;

// The states that a walk has visited, by sum, with what was left of the bounds at the visit. Two
// unlike states with one sum of 64 bits would be taken for the same: the walk would not see what
// follows the second. Of ten million states this happens with a probability of 3 in a million.
class Visited {
 public:
  // Returns false if the state was visited with as much left, or with more.
  bool add(std::uint64_t sum, std::uint64_t budget) {
    if (used_ * 3 >= table_.size() * 2) grow();
    bool known = false;
    for (std::size_t at = sum & (table_.size() - 1);; at = (at + 1) & (table_.size() - 1)) {
      auto& [key, left] = table_[at];
      if (left == kFree) {
        table_[at] = {sum, budget};
        ++used_;
        if (!known) ++states_;
        return true;
      }
      if (key != sum) continue;
      if (covers(left, budget)) return false;
      known = true;
      if (!covers(budget, left)) continue;
      left = budget;
      return true;
    }
  }
  std::size_t states() const { return states_; }
  // Returns whether the table would need more than 3 GiB while it grows.
  bool full() const { return table_.size() >= kMost && used_ * 3 >= table_.size() * 2; }

 private:
  static constexpr std::size_t kMost = 1U << 27U;
  static constexpr std::uint64_t kFree = ~0ULL;
  static bool covers(std::uint64_t more, std::uint64_t less) {
    for (int shift = 0; shift < 64; shift += 8)
      if ((more >> shift & 0xFFU) < (less >> shift & 0xFFU)) return false;
    return true;
  }
  void grow() {
    const auto old = std::exchange(table_, Table(table_.size() * 2, {0, kFree}));
    for (const auto& entry : old) {
      if (entry.second == kFree) continue;
      std::size_t at = entry.first & (table_.size() - 1);
      while (table_[at].second != kFree)
        at = (at + 1) & (table_.size() - 1);
      table_[at] = entry;
    }
  }

  using Table = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  Table table_ = Table(1U << 16U, {0, kFree});
  std::size_t used_ = 0;
  std::size_t states_ = 0;
};

class Walk {
 public:
  Walk(const WalkBounds& bounds, std::size_t most) : most_(most), first_(bounds) {}

  void run() { go(first_); }
  std::string report() const {
    return fmt::format(
        "{} states, {} visits, {} events, {} ends, {} settled, {} with a new leader, depth {}{}",
        visited_.states(), visits_, events_, ends_.size(), settled_, led_again_, deepest_,
        !fault_.empty() ? ", stopped by a fault"
        : cut_short_    ? ", CUT SHORT"
                        : ", all");
  }
  bool complete() const { return !cut_short_; }
  const std::string& fault() const { return fault_; }
  std::size_t states() const { return visited_.states(); }
  std::size_t led_again() const { return led_again_; }
  // The sums of the states in which nothing can happen any more.
  const std::set<std::uint64_t>& ends() const { return ends_; }

 private:
  void go(const WalkState& state) {
    const std::uint64_t sum = state.sum();
    if (!visited_.add(sum, state.budget())) return;
    ++visits_;
    deepest_ = std::max(deepest_, path_.size());
    if (state.led_again()) ++led_again_;
    const auto events = state.events();
    // All ends, and some of the states on the way, which the sum picks evenly.
    const bool is_end = events.empty() && !state.has_news();
    if (is_end || sum % 64 == 0) {
      ++settled_;
      if (is_end) ends_.insert(sum);
      if (const std::string wrong = settled(state); !wrong.empty()) return found(wrong);
    }
    for (const auto& event : events) {
      if (!fault_.empty()) return;
      if (visits_ >= most_ || visited_.full()) {
        cut_short_ = true;
        return;
      }
      ++events_;
      WalkState next = state;
      path_.push_back(event);
      next.apply(event);
      next.check();
      if (!next.fault().empty()) return found(next.fault());
      go(next);
      path_.pop_back();
    }
  }
  // A search may take longer when nodes miss each other. A state from which no luck helps is wrong.
  static std::string settled(const WalkState& state) {
    std::string wrong;
    for (std::uint64_t luck = state.sum(), tries = 0; tries < 32;
         luck = luck * 0x9E3779B97F4A7C15, ++tries) {
      WalkState copy = state;
      wrong = copy.settle(luck);
      if (wrong.empty()) return {};
    }
    return wrong;
  }
  void found(const std::string& what) {
    if (!fault_.empty()) return;
    fault_ = what + " after";
    for (const auto& event : path_)
      fault_ += ", " + WalkState::text(event);
  }

  std::size_t most_;
  WalkState first_;
  Visited visited_;
  std::size_t visits_ = 0;
  std::vector<WalkState::Event> path_;
  std::string fault_;
  std::size_t events_ = 0;
  std::set<std::uint64_t> ends_;
  std::size_t settled_ = 0;
  std::size_t led_again_ = 0;
  std::size_t deepest_ = 0;
  bool cut_short_ = false;
};

// Sanitizers find their defects in few states. Builds without them see all.
constexpr bool kAll = test_rounds(5) == 5;

void walk(const WalkBounds& bounds) {
  Walk walk(bounds, kAll ? 4'000'000U : 2'000U);
  walk.run();
  fmt::print("{} nodes: {}\n", bounds.nodes, walk.report());
  EXPECT_EQ(walk.fault(), "");
  EXPECT_GT(walk.led_again(), 0U);
  EXPECT_TRUE(walk.complete() || !kAll);
}

TEST(SuccessionWalk, OfThreeNodesOneDies) {
  walk({.nodes = 3, .cuts = 0, .writes = 1, .openings = 2, .steps = 4});
}
TEST(SuccessionWalk, OfThreeNodesOneDiesBeforeTheJobHasBegun) {
  walk({.nodes = 3, .cuts = 0, .writes = 1, .openings = 2, .steps = 3, .begun = false});
}
TEST(SuccessionWalk, AnEndOrARoundIsWrittenAfterTheOther) {
  walk({.nodes = 3, .cuts = 0, .writes = 2, .openings = 1, .steps = 1});
}
TEST(SuccessionWalk, TheNetworkOfThreeNodesIsCutWhileARoundIsWritten) {
  walk({.nodes = 3, .crashes = 0, .writes = 1, .openings = 1, .steps = 0});
}
// A node whose patience ends twice comes back to the hub that it took for gone. That hub may write
// in its old term then, before it has heard of the node's promise to another hub.
TEST(SuccessionWalk, TheNetworkOfThreeNodesIsCutAndANodeComesBack) {
  walk({.nodes = 3, .crashes = 0, .writes = 0, .openings = 1, .steps = 2});
}
TEST(SuccessionWalk, TheNetworkOfTwoNodesAndAVoteIsCutAndANodeComesBack) {
  walk({.nodes = 3, .crashes = 0, .writes = 0, .openings = 1, .steps = 2, .last_votes = true});
}
TEST(SuccessionWalk, OneDiesAndTheNetworkIsCutWhileARoundIsWritten) {
  walk({.nodes = 3, .writes = 1, .openings = 1, .steps = 0});
}
TEST(SuccessionWalk, OneDiesAndTheNetworkIsCut) {
  walk({.nodes = 3, .writes = 0, .openings = 1, .steps = 0});
}
TEST(SuccessionWalk, OfTwoNodesAndAVoteOneDies) {
  walk({.nodes = 3, .cuts = 0, .writes = 1, .openings = 2, .steps = 4, .last_votes = true});
}
TEST(SuccessionWalk, OfTwoNodesAndAVoteTwoDie) {
  walk({.nodes = 3,
        .crashes = 2,
        .cuts = 0,
        .writes = 1,
        .openings = 1,
        .steps = 1,
        .last_votes = true});
}
TEST(SuccessionWalk, TheNetworkOfTwoNodesAndAVoteIsCutWhileARoundIsWritten) {
  walk({.nodes = 3, .crashes = 0, .writes = 1, .openings = 1, .steps = 0, .last_votes = true});
}
TEST(SuccessionWalk, OfTwoNodesAndAVoteOneDiesAndTheNetworkIsCut) {
  walk({.nodes = 3, .writes = 0, .openings = 1, .steps = 0, .last_votes = true});
}
TEST(SuccessionWalk, OfFourNodesOneDies) {
  walk({.nodes = 4, .cuts = 0, .writes = 1, .openings = 1, .steps = 1});
}
TEST(SuccessionWalk, TheNetworkOfFourNodesIsCut) {
  walk({.nodes = 4, .crashes = 0, .writes = 0, .openings = 1, .steps = 0});
}
TEST(SuccessionWalk, OfFiveNodesOneDies) {
  walk({.nodes = 5, .cuts = 0, .writes = 0, .openings = 1, .steps = 2});
}

// --- without the partial-order reduction ---

// The reduction must lose no end. What is left of the bounds is the same in all ends: nothing.
void compare(WalkBounds bounds) {
  Walk reduced(bounds, SIZE_MAX);
  reduced.run();
  bounds.prompt = false;
  Walk all(bounds, SIZE_MAX);
  all.run();
  fmt::print("{}\n{}, without the reduction\n", reduced.report(), all.report());
  EXPECT_LT(reduced.states(), all.states());
  EXPECT_EQ(reduced.fault(), "");
  EXPECT_EQ(all.fault(), "");
  EXPECT_EQ(reduced.ends(), all.ends());
}

TEST(SuccessionWalk, TheReductionLosesNoEndOfADeath) {
  compare({.nodes = 3, .cuts = 0, .writes = 1, .openings = 1, .steps = 1});
}
TEST(SuccessionWalk, TheReductionLosesNoEndOfACut) {
  compare({.nodes = 3, .crashes = 0, .writes = 0, .openings = 1, .steps = 0});
}
TEST(SuccessionWalk, TheReductionLosesNoEndOfACutAfterWhichANodeComesBack) {
  if (!kAll) GTEST_SKIP() << "takes a minute with sanitizers";
  compare({.nodes = 3, .crashes = 0, .writes = 0, .openings = 1, .steps = 2});
}
TEST(SuccessionWalk, TheReductionLosesNoEndOfADeathAndACut) {
  if (!kAll) GTEST_SKIP() << "takes a minute with sanitizers";
  compare({.nodes = 3, .writes = 0, .openings = 1, .steps = 0});
}

// --- in real time, without a fault meanwhile ---

// Returns how long it takes until a quorum has met, from the moment at which the last node notices
// that node 0 is gone.
int meet(const WalkState& first, std::mt19937_64& luck, std::vector<int> notices) {
  const int last = *std::max_element(notices.begin() + 1, notices.end());
  WalkState state = first;
  const int met = state.meet(luck(), notices, last + 60'000) - last;
  EXPECT_EQ(state.fault(), "");
  return met;
}

// Nodes look for each other at one place after the other, each at its own time. A node gives up
// after 30 s.
TEST(SuccessionMeeting, NodesMeetHoweverLateSomeNotice) {
  std::mt19937_64 luck(1);
  for (int nodes = 3; nodes <= 5; ++nodes) {
    const WalkState first({.nodes = nodes, .openings = 255, .steps = 255});
    int longest = 0;
    for (int late = 0; late < 1 << nodes; late += 2)  // a bit for each node but node 0
      for (int tries = 0; tries < test_rounds(60); ++tries) {
        const int later = static_cast<int>(luck() % 20'000);
        std::vector<int> notices;
        notices.reserve(static_cast<std::size_t>(nodes));
        for (int i = 0; i < nodes; ++i)
          notices.push_back(static_cast<int>(luck() % 1'000) + ((late >> i) & 1) * later);
        longest = std::max(longest, meet(first, luck, notices));
      }
    fmt::print("{} nodes: met within {} ms\n", nodes, longest);
    EXPECT_LT(longest, 20'000) << nodes << " nodes";
  }
}

// --- walks of minutes: their beginnings, and by hand the whole ---

// LOCKSTEP_WHOLE_WALKS=1 goes all the way: one thread, and at most 3 GiB for the sums of the
// states.
void walk_whole(const WalkBounds& bounds) {
  const bool whole = std::getenv("LOCKSTEP_WHOLE_WALKS") != nullptr;
  const std::clock_t begin = std::clock();
  Walk walk(bounds, whole ? SIZE_MAX : 20'000);
  walk.run();
  const auto seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  fmt::print("{} nodes: {}, {:.1f} s of CPU\n", bounds.nodes, walk.report(), seconds);
  EXPECT_EQ(walk.fault(), "");
  EXPECT_EQ(walk.complete(), whole);
}

TEST(SuccessionWholeWalk, OfFourNodesOneDiesAndTheNetworkIsCut) {
  walk_whole({.nodes = 4, .writes = 0, .openings = 1, .steps = 0});
}
TEST(SuccessionWholeWalk, TheNetworkOfFiveNodesIsCut) {
  walk_whole({.nodes = 5, .crashes = 0, .writes = 0, .openings = 1, .steps = 0});
}
}  // namespace
}  // namespace lockstep::rendezvous::hub
