#include "looks/world_straggler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::looks {
namespace {

struct Shape {
  int nodes = 2;
  int each = 1;         // ranks of a node
  double work = 1;      // seconds of a step before the collective
  double together = 0;  // seconds that the collective takes once all ranks are there
  double noise = 0.01;  // of the work, in each step of each rank
  unsigned seed = 1;
};

// A training whose nodes look about once a second, each at other moments, and tell their shares
// every ten looks. How much longer a rank works is up to `slowness`.
class Training {
 public:
  explicit Training(const Shape& shape)
      : shape_(shape), random_(shape.seed), ends_(static_cast<std::size_t>(ranks())) {
    std::uniform_real_distribution<double> moment(0, 1);
    for (int node = 0; node < shape.nodes; ++node) {
      nodes_.push_back({.next = moment(random_), .looks = static_cast<int>(10 * moment(random_))});
      for (int i = 0; i < shape.each; ++i)
        nodes_.back().ranks.push_back({.rank = node * shape.each + i});
    }
    next_step();
  }

  int ranks() const { return shape_.nodes * shape_.each; }

  StragglerWatch::News second() {
    const auto earlier = [](const Node& a, const Node& b) { return a.next < b.next; };
    while (true) {
      Node& node = *std::min_element(nodes_.begin(), nodes_.end(), earlier);
      if (node.next >= second_ + 1) break;
      look(node);
    }
    ++second_;
    WorldStraggler::Shares all;
    bool known = true;
    for (const Node& node : nodes_) {
      const auto waits = read_waits(node.told, ranks());
      known = known && waits && !waits->incomplete;
      if (waits) all.insert(waits->ranks.begin(), waits->ranks.end());
    }
    return straggler.feed(known ? std::optional(all) : std::nullopt, verdict,
                          io::TimePoint{} + std::chrono::seconds(second_));
  }
  // Returns how often a rank was named within so many seconds.
  int named(int looks) {
    int count = 0;
    for (int i = 0; i < looks; ++i)
      if (const auto news = second(); news.begins) {
        ++count;
        last = *news.begins;
      }
    return count;
  }

  std::function<double(int rank)> slowness = [](int) { return 1.0; };
  WorldStraggler straggler;
  Verdict verdict = [] {
    Verdict trains;
    trains.state = VerdictState::training;
    return trains;
  }();
  Straggler last;

 private:
  struct Node {
    double next = 0;  // the moment of its next look
    int looks = 0;
    std::vector<RankShares> ranks = {};
    StragglerWatch watch = {};
    std::string told = {};
  };

  void next_step() {
    begins_ = over_;
    double latest = begins_;
    for (std::size_t rank = 0; rank < ends_.size(); ++rank) {
      const double noise = std::normal_distribution<double>(0, shape_.noise)(random_);
      ends_[rank] =
          begins_ + shape_.work * std::max(0.1, 1 + noise) * slowness(static_cast<int>(rank));
      latest = std::max(latest, ends_[rank]);
    }
    over_ = latest + shape_.together;
  }

  void look(Node& node) {
    while (over_ <= node.next)
      next_step();
    for (RankShares& rank : node.ranks)
      rank.add(node.next >= ends_[static_cast<std::size_t>(rank.rank)], false);
    node.watch.feed(node.ranks, verdict);
    const auto& late = node.watch.current();
    if (++node.looks % 10 == 0)
      node.told = waits_text(node.ranks, late ? std::optional(late->rank) : std::nullopt);
    node.next += std::uniform_real_distribution<double>(0.5, 1.5)(random_);  // as Looker does
  }

  Shape shape_;
  std::mt19937 random_;
  std::vector<Node> nodes_;
  int second_ = 0;
  double begins_ = 0;
  double over_ = 0;
  std::vector<double> ends_;
};

TEST(WorldStraggler, HealthyRanksAreNotNamed) {
  unsigned seed = 0;
  for (const auto& [nodes, each] : {std::pair(2, 1), std::pair(8, 1), std::pair(3, 4)})
    for (const double step : {0.05, 0.1, 0.5, 0.9, 1.0, 1.01, 2.0, 7.0, 20.0, 50.0})
      for (const double share : {0.02, 0.3, 0.7})
        for (const double noise : {0.0, 0.02}) {
          Training training({.nodes = nodes,
                             .each = each,
                             .work = step * (1 - share),
                             .together = step * share,
                             .noise = noise,
                             .seed = ++seed});
          EXPECT_EQ(training.named(600), 0)
              << nodes << " nodes, " << each << " ranks each, steps of " << step << " s, waits "
              << share << ", noise " << noise << ": rank " << training.last.rank << " "
              << training.last.share << " of " << training.last.others;
        }
}

TEST(WorldStraggler, TheOnlyRankOfANodeIsNamedOnceAndWithdrawn) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    Training training({.nodes = 4, .work = 0.1, .seed = seed});
    training.slowness = [](int rank) { return rank == 2 ? 3.0 : 1.0; };
    EXPECT_EQ(training.named(59), 0) << "a minute of looks";
    EXPECT_EQ(training.named(121), 1);
    EXPECT_EQ(training.last.rank, 2);
    EXPECT_LE(training.last.share, 0.10);
    EXPECT_GE(training.last.others, 0.45);
    EXPECT_EQ(training.named(1000), 0) << "told once";
    EXPECT_TRUE(training.straggler.current());
    training.slowness = [](int) { return 1.0; };
    EXPECT_EQ(training.named(120), 0);
    EXPECT_FALSE(training.straggler.current());
  }
}

TEST(WorldStraggler, ASlowNodeIsNamedByOneOfItsRanks) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    Training training({.nodes = 3, .each = 4, .work = 0.2, .seed = seed});
    training.slowness = [](int rank) { return rank / 4 == 1 ? 1.3 : 1.0; };
    EXPECT_EQ(training.named(900), 1) << seed;
    EXPECT_EQ(training.last.rank / 4, 1);
    EXPECT_EQ(training.named(1800), 0) << "told once";
  }
}

TEST(WorldStraggler, ARankThatItsOwnNodeHasFoundNeedsNoMore) {
  Training training({.nodes = 3, .each = 4, .work = 1});
  training.slowness = [](int rank) { return rank == 5 ? 1.3 : 1.0; };
  EXPECT_EQ(training.named(180), 1);
  EXPECT_EQ(training.last.rank, 5);
}

TEST(WorldStraggler, LongStepsOfASlowRankAreNoLongWait) {
  Training training({.nodes = 4, .work = 10});
  training.slowness = [](int rank) { return rank == 3 ? 2.0 : 1.0; };
  EXPECT_EQ(training.named(400), 1);
  EXPECT_EQ(training.last.rank, 3);
}

// Rank 0 saves a checkpoint now and then, and the others wait for it.
TEST(WorldStraggler, OneLongWaitIsNone) {
  for (const double length : {8.0, 20.0, 29.0})
    for (unsigned seed = 1; seed <= 2; ++seed) {
      Training training({.nodes = 4, .work = 0.3, .together = 0.1, .seed = seed});
      int step = 0;
      training.slowness = [&](int rank) {
        if (rank != 0) return 1.0;
        return ++step % 500 == 0 ? 1 + length / 0.3 : 1.0;
      };
      EXPECT_EQ(training.named(3600), 0) << length;
    }
}

WorldStraggler::Shares shares_of(std::vector<double> waits) {
  WorldStraggler::Shares shares;
  for (std::size_t rank = 0; rank < waits.size(); ++rank)
    shares[static_cast<int>(rank)] = {.waits = waits[rank], .longest = 0.05};
  return shares;
}

TEST(WorldStraggler, TenPointsOfRoundedSharesAreNotEnough) {
  WorldStraggler edge;
  WorldStraggler more;
  Verdict trains;
  trains.state = VerdictState::training;
  for (int second = 1; second <= 3600; ++second) {
    const io::TimePoint now = io::TimePoint{} + std::chrono::seconds(second);
    EXPECT_FALSE(edge.feed(shares_of({0.1, 0.1, 0.0, 0.1}), trains, now).begins);
    more.feed(shares_of({0.15, 0.15, 0.0, 0.15}), trains, now);
  }
  ASSERT_TRUE(more.current());
  EXPECT_EQ(more.current()->rank, 2);
}

TEST(WorldStraggler, NothingIsDecidedWhileSharesAreUnknownOrTheJobStands) {
  WorldStraggler straggler;
  Verdict verdict;
  verdict.state = VerdictState::training;
  auto feed = [&, second = 0](const std::optional<WorldStraggler::Shares>& shares) mutable {
    return straggler.feed(shares, verdict, io::TimePoint{} + std::chrono::seconds(++second));
  };
  const auto slow = shares_of({0.6, 0.6, 0.0, 0.6});
  EXPECT_FALSE(feed(std::nullopt).begins);
  EXPECT_FALSE(feed(shares_of({0.6})).begins);
  EXPECT_FALSE(feed(WorldStraggler::Shares{}).begins);
  EXPECT_EQ(feed(slow).begins->rank, 2);
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(feed(std::nullopt).ends) << "a silent node says nothing about the straggler";
  verdict.state = VerdictState::waiting;
  verdict.since = kLongStand;
  EXPECT_TRUE(feed(slow).forget);
  ASSERT_TRUE(straggler.current());
  // The rank has gone.
  verdict.state = VerdictState::training;
  bool ended = false;
  for (int i = 0; i < 20; ++i)
    ended = feed(shares_of({0.6, 0.6})).ends == 2 || ended;
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace lockstep::looks
