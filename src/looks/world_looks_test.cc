#include "looks/world_looks.h"

#include "looks/hang_words.h"
#include "looks/looks_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>

namespace lockstep::looks {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr int kNodes = 3;
constexpr int kEach = 2;  // ranks of a node

// Three nodes with two ranks each that look once a second, tell the leader, and hear its verdict.
struct FakeWorld {
  using Act = std::function<void(RankLook&)>;  // changes a look within a second

  struct Node {
    LookBook book;
    NodeTeller teller = NodeTeller();
    WorldView view = WorldView();
    std::vector<RankLook> looks = {};
    Fold fold = {};
    bool runs = true;  // its agent
    bool link = true;  // its news arrive
  };

  FakeWorld() {
    for (int node = 0; node < kNodes; ++node) {
      nodes.push_back({.book = LookBook("n" + std::to_string(node + 1), 1000ms)});
      for (int i = 0; i < kEach; ++i) {
        const int rank = node * kEach + i;
        RankLook look{.rank = rank, .pid = 1000 + rank, .process = asleep('S', "futex_do_wait")};
        look.stack = stack_of(in_backward());
        nodes.back().looks.push_back(look);
      }
    }
  }

  RankLook& rank(int rank) {
    return nodes[static_cast<std::size_t>(rank / kEach)]
        .looks[static_cast<std::size_t>(rank % kEach)];
  }
  void each(const Act& act) {
    for (Node& node : nodes)
      for (RankLook& look : node.looks)
        act(look);
  }

  // Passes a second, in which the agents look one after the other.
  const Verdict& second() {
    now += 1000ms;
    for (std::size_t at = 1; at < nodes.size(); ++at)
      if (nodes[at].runs) look(static_cast<int>(at));
    if (nodes[0].runs) lead();
    return judge.verdict();
  }
  const Verdict& seconds(int count) {
    for (int i = 0; i < count; ++i)
      second();
    return judge.verdict();
  }
  // Trains for some seconds: each rank moves on, and is found in a step.
  void train(int count = 8) {
    for (int i = 0; i < count; ++i) {
      each([i](RankLook& look) {
        look.process->main_ns += 400'000'000;
        look.process->cpu_ticks += 60;
        look.stack = stack_of(i % 2 == 0 ? in_backward() : in_own_code(50 + i % 5, "train"));
      });
      second();
    }
    each([](RankLook& look) { look.stack = stack_of(in_backward()); });
  }

  void look(int at) {
    Node& node = nodes[static_cast<std::size_t>(at)];
    node.fold = node.book.feed(node.looks, now);
    const auto news = node.teller.feed(node.fold, {.lacks = node.view.lacks_fold()}, now);
    if (!news) return;
    const std::string text = print_news(*news);
    ++told;
    bytes = std::max(bytes, text.size());
    if (node.link && leader.hear(at, text, now)) teller.repeat_fold();
  }

  void lead() {
    nodes[0].fold = nodes[0].book.feed(nodes[0].looks, now);
    whole = leader.merged(nodes[0].fold, now);
    const Verdict& verdict =
        judge.feed(whole, {.world = kNodes * kEach, .unseen = leader.silence(now)}, now);
    if (verdict.alarm_begins) ++alarms;
    const auto news = teller.feed(
        {.state = std::string(kVerdictStateWords[static_cast<std::size_t>(verdict.state)]),
         .words = verdict_words(verdict),
         .alarms = alarms,
         .alarm = alarms > 0 ? "hang: \n  rank" : "",
         .unknown = leader.unknown(),
         .fold = whole,
         .verdict = verdict},
        now);
    if (!news) return;
    for (std::size_t at = 1; at < nodes.size(); ++at) {
      Node& node = nodes[at];
      if (!node.runs || !node.link) continue;
      if (node.view.hear(print_news(*news), now)) ++heard_alarms;
      if (node.view.asks(static_cast<int>(at))) node.teller.forget();
    }
  }

  std::vector<Node> nodes;
  WorldLooks leader{kNodes, kNodes* kEach};
  WorldTeller teller{kNodes};
  Judge judge{{.hang_after = Millis(5000)}};
  Fold whole;
  io::TimePoint now{5h};
  int alarms = 0;
  int heard_alarms = 0;
  int told = 0;
  std::size_t bytes = 0;
};

TEST(WorldLooks, AHangOfOneRankIsToldOnceAndKnownOnAllNodes) {
  FakeWorld world;
  world.train();
  world.rank(5).stack = stack_of(in_own_code(31));
  world.rank(5).process = asleep('S', "hrtimer_nanosleep");
  int passed = 0;
  while (world.alarms == 0 && passed < 20) {
    world.second();
    ++passed;
  }
  EXPECT_LE(passed, 7);
  const Verdict& verdict = world.judge.verdict();
  ASSERT_EQ(verdict.state, VerdictState::hung);
  ASSERT_EQ(verdict.awaited.size(), 1U);
  EXPECT_EQ(verdict.awaited[0].ranks, std::vector<int>{5});
  EXPECT_EQ(verdict.place.line, "job.py:31");
  EXPECT_EQ(node_of(world.whole, 5), "n3");
  world.seconds(100);
  EXPECT_EQ(world.alarms, 1);
  EXPECT_EQ(world.heard_alarms, 2);
  for (const int at : {1, 2}) {
    const FakeWorld::Node& node = world.nodes[static_cast<std::size_t>(at)];
    EXPECT_NE(node.view.words(world.now).find("hung for "), std::string::npos);
    EXPECT_NE(node.view.words(world.now).find("rank 5 at job.py:31"), std::string::npos);
    EXPECT_EQ(node.view.news().alarm, "hang: \n  rank");
    EXPECT_EQ(count_alive(node.view.merged(node.fold)), 6U);
  }
}

TEST(WorldLooks, LongWorkOfOneRankIsAWait) {
  FakeWorld world;
  world.train();
  world.rank(4).stack = stack_of(in_own_code(42, "prepare"));
  for (int i = 0; i < 60; ++i) {
    world.rank(4).process->main_ns += 600'000'000;
    world.rank(4).process->cpu_ticks += 60;
    world.second();
    if (i > 8) {
      ASSERT_EQ(world.judge.verdict().state, VerdictState::waiting) << i;
    }
  }
  EXPECT_EQ(world.alarms, 0);
  EXPECT_EQ(world.judge.verdict().waiting, (std::vector<int>{0, 1, 2, 3, 5}));
  EXPECT_EQ(world.judge.verdict().place.line, "job.py:42");
}

// The last message tells of ranks that stand still, and then the agent is stopped.
TEST(WorldLooks, NothingIsClaimedAboutASilentNode) {
  for (const int node : {1, 2}) {
    FakeWorld world;
    world.train();
    world.seconds(3);
    world.nodes[static_cast<std::size_t>(node)].runs = false;
    world.seconds(60);
    EXPECT_EQ(world.alarms, 0);
    EXPECT_EQ(world.judge.verdict().state, VerdictState::quiet);
    const std::string silence = "node n" + std::to_string(node + 1) + " has not told for 6";
    EXPECT_TRUE(world.judge.verdict().hold.starts_with(silence)) << world.judge.verdict().hold;
    EXPECT_EQ(count_alive(world.whole), 4U);
    // It comes back, and the ranks still hang.
    world.nodes[static_cast<std::size_t>(node)].runs = true;
    world.seconds(10);
    EXPECT_EQ(world.alarms, 1);
  }
}

TEST(WorldLooks, ASilentLeaderIsNamed) {
  FakeWorld world;
  world.train();
  world.nodes[0].runs = false;
  world.seconds(9);
  EXPECT_EQ(world.nodes[1].view.words(world.now), "node n1 has not told for 9 s");
  EXPECT_EQ(WorldView().words(world.now), "node 0 of the round has told nothing");
}

TEST(WorldLooks, ANodeThatNeverToldIsNamed) {
  FakeWorld world;
  world.nodes[2].runs = false;
  world.train();
  world.seconds(20);
  EXPECT_EQ(world.alarms, 0);
  EXPECT_EQ(world.leader.silence(world.now),
            "node 2 of the round has told nothing (run by torchrun, or not heard)");
  world.nodes[1].runs = false;
  world.seconds(9);
  EXPECT_EQ(world.leader.silences(world.now),
            (std::vector<std::string>{
                "node n2 has not told for 9 s",
                "node 2 of the round has told nothing (run by torchrun, or not heard)"}));
  EXPECT_EQ(world.leader.unknown(), std::vector<int>{2});
}

TEST(WorldLooks, LostNewsAreAskedForAgain) {
  FakeWorld world;
  world.train();
  world.nodes[1].link = false;
  world.rank(2).stack = stack_of(in_own_code(77));
  world.seconds(2);  // lost: the line of rank 2, and that it stands still
  world.nodes[1].link = true;
  world.seconds(4);
  const auto& groups = world.whole.groups;
  EXPECT_TRUE(std::any_of(groups.begin(), groups.end(),
                          [](const Group& group) { return group.place.line == "job.py:77"; }));
  EXPECT_EQ(count_alive(world.whole), 6U);
}

TEST(WorldLooks, ANodeThatMissedTheLastFoldOfAllGetsItAgain) {
  FakeWorld world;
  world.train();
  world.nodes[1].link = false;
  world.rank(5).stack = stack_of(in_own_code(77));
  world.seconds(4);
  world.nodes[1].link = true;
  world.seconds(6);
  const auto& groups = world.nodes[1].view.news().fold->groups;
  EXPECT_TRUE(std::any_of(groups.begin(), groups.end(),
                          [](const Group& group) { return group.place.line == "job.py:77"; }));
  EXPECT_FALSE(world.nodes[1].view.lacks_fold());
}

TEST(WorldLooks, AWatchdogThatHasTimedOutIsToldAtOnce) {
  const io::TimePoint start{5h};
  const Fold own{{"n2"}, {{.key = 1, .ranks = {{0, {1}}}}}};
  NodeTeller node;
  WorldLooks leader(2, 2);
  leader.hear(1, print_news(*node.feed(own, {}, start)), start);
  EXPECT_EQ(leader.timed_out(), std::nullopt);
  const auto news = node.feed(own, {.timed_out = 1}, start + 1000ms);
  ASSERT_TRUE(news);
  leader.hear(1, print_news(*news), start + 1000ms);
  EXPECT_EQ(leader.timed_out(), 1);
  EXPECT_FALSE(node.feed(own, {.timed_out = 1}, start + 2000ms)) << "once";
}

TEST(WorldLooks, WhatRecordersSayComesWithAFold) {
  const io::TimePoint start{5h};
  const Fold own{{"n2"}, {{.key = 1, .ranks = {{0, {1}}}}}};
  NodeTeller node;
  WorldLooks leader(2, 2);
  const auto tell = [&](const std::string& recorders, milliseconds after) {
    const auto news = node.feed(own, {.recorders = recorders}, start + after);
    if (news) leader.hear(1, print_news(*news), start + after);
    return news.has_value();
  };
  EXPECT_TRUE(tell("", 0ms));
  EXPECT_TRUE(leader.recorders(start).empty());
  EXPECT_TRUE(tell("{\"parts\":[]}", 1000ms)) << "they are told at once";
  ASSERT_EQ(leader.recorders(start + 1000ms).size(), 1U);
  EXPECT_EQ(leader.recorders(start + 1000ms).at(1).text, "{\"parts\":[]}");
  const auto number = leader.recorders(start + 1000ms).at(1).number;
  EXPECT_FALSE(tell("{\"parts\":[]}", 2000ms));
  EXPECT_TRUE(tell("{\"parts\":[]}", 3000ms)) << "a short line keeps them";
  EXPECT_EQ(leader.recorders(start + 3000ms).at(1).number, number);
  EXPECT_TRUE(leader.recorders(start + 30s).empty()) << "of a silent node nothing is known";
  EXPECT_TRUE(tell("", 4000ms));
  EXPECT_TRUE(leader.recorders(start + 4000ms).empty());
}

TEST(WorldLooks, TheVerdictIsTheSameOnAllNodes) {
  FakeWorld world;
  world.train();
  world.rank(5).stack = stack_of(in_own_code(31));
  world.rank(5).process = asleep('S', "hrtimer_nanosleep");
  world.seconds(12);
  const Verdict& judged = world.judge.verdict();
  ASSERT_EQ(judged.state, VerdictState::hung);
  const auto told = world.nodes[2].view.verdict();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->state, VerdictState::hung);
  EXPECT_TRUE(told->alarm);
  EXPECT_EQ(told->waiting, judged.waiting);
  EXPECT_EQ(told->awaited, judged.awaited);
  const auto rows = world.nodes[2].book.rows(world.nodes[2].looks, *told);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].state, "waiting");
  EXPECT_EQ(rows[1].state, "hung");
}

TEST(WorldNews, TheStragglerOfAllNodesIsToldAtOnce) {
  WorldTeller teller(2);
  WorldNews news{.state = "training", .slow = WorldSlow{}};
  io::TimePoint now{5h};
  ASSERT_TRUE(teller.feed(news, now));
  EXPECT_FALSE(teller.feed(news, now + 1s));
  news.slow = WorldSlow{5, "rank 5 (node n2) makes the others wait", "rank 5 (node n2)"};
  const auto told = teller.feed(news, now + 1s);
  ASSERT_TRUE(told);
  WorldView view;
  view.hear(print_news(*told), now);
  EXPECT_EQ(view.news().slow, news.slow);
  view.hear(print_news(WorldNews{.state = "training"}), now);
  EXPECT_FALSE(view.news().slow) << "an older version";
  EXPECT_FALSE(read_world_news(R"({"state":"training","slow":[]})")->slow);
  const auto odd = read_world_news(R"({"slow":{"rank":-7,"words":"x"}})");
  EXPECT_EQ(odd->slow, WorldSlow{});
  const auto loud = read_world_news(R"({"slow":{"rank":3,"words":"a\u001b[31m"}})");
  EXPECT_EQ(loud->slow->words.find('\x1b'), std::string::npos);
  EXPECT_EQ(loud->slow->name, "rank 3") << "an older version tells no name";
  const auto named = read_world_news(R"({"slow":{"rank":3,"words":"w","name":"n\u001b[31m"}})");
  EXPECT_EQ(named->slow->name.find('\x1b'), std::string::npos);
}

TEST(WorldNews, AVerdictOfAnotherVersionIsLeftOut) {
  const std::string known = print_news(WorldNews{.state = "hung", .verdict = Verdict{}});
  EXPECT_TRUE(read_world_news(known)->verdict);
  EXPECT_FALSE(read_world_news(print_news(WorldNews{.state = "hung"}))->verdict);
  EXPECT_FALSE(
      read_world_news(print_news(WorldNews{.state = "new", .verdict = Verdict{}}))->verdict);
  const auto odd = read_world_news(
      R"({"state":"hung","verdict":{"since":-4,"waiting":"9-1","awaited":[{"ranks":"x","why":"y"}]}})");
  ASSERT_TRUE(odd->verdict);
  EXPECT_EQ(odd->verdict->since.count(), 0);
  EXPECT_TRUE(odd->verdict->waiting.empty() && odd->verdict->awaited.empty());
}

TEST(WorldLooks, WithoutAChangeOnlyAShortLineIsSent) {
  FakeWorld world;
  world.train();
  world.seconds(10);
  EXPECT_LE(world.bytes, 2048U);
  world.told = 0;
  world.bytes = 0;
  world.seconds(20);
  EXPECT_EQ(world.told, 2 * 10);  // two nodes, every two seconds
  EXPECT_LE(world.bytes, 16U);
  // Ranks that run in the same place say nothing new either.
  world.told = 0;
  for (int i = 0; i < 20; ++i) {
    world.each([](RankLook& look) {
      look.process->main_ns += 600'000'000;
      look.process->cpu_ticks += 60;
    });
    world.second();
    ASSERT_EQ(world.judge.verdict().state, VerdictState::training);
  }
  EXPECT_LE(world.told, 2 * 12);
}

TEST(WorldLooks, AgesGrowOnlyWhileTheNodeSpeaks) {
  const io::TimePoint start{5h};
  WorldLooks leader(2, 2);
  const Fold own{{"n1"}, {{.key = 1, .ranks = {{0, {0}}}}}};
  const Fold other{{"n2"}, {{.key = 2, .ranks = {{0, {1}}}, .quiet = 3000ms}}};
  leader.hear(1, print_news(NodeNews{.number = 1, .fold = other}), start);
  const auto quiet = [&](milliseconds after) {
    const Fold all = leader.merged(own, start + after);
    return all.groups.size() == 2 ? all.groups[1].quiet : Millis(-1);
  };
  EXPECT_EQ(quiet(0ms), 3000ms);
  EXPECT_EQ(quiet(1500ms), 4500ms);
  EXPECT_EQ(quiet(4000ms), 5000ms);  // the node may see something else by now
  EXPECT_EQ(quiet(5000ms), -1ms);
  leader.hear(1, print_news(NodeNews{.number = 1}), start + 4500ms);
  EXPECT_EQ(quiet(5000ms), 8000ms);
  leader.hear(1, print_news(NodeNews{.number = 2}), start + 4600ms);
  EXPECT_EQ(quiet(5000ms), -1ms) << "a fold is missing";
}

TEST(WorldLooks, PidsThatTwoNodesHaveNameNoRank) {
  WorldLooks leader(3, 6);
  const Fold fold{{"n2"}, {{.key = 2, .ranks = {{0, {2, 3}}}}}};
  leader.hear(1,
              print_news(NodeNews{
                  .number = 1, .fold = fold, .pids = {{2, 8}, {3, 9}}, .gpus = {{2, 0}, {3, 1}}}),
              {});
  leader.hear(1, print_news(NodeNews{.number = 2, .fold = fold}), {});
  EXPECT_EQ(leader.gpu_of(2), 0);
  EXPECT_EQ(leader.gpu_of(3), 1);
  EXPECT_EQ(leader.gpu_of(4), std::nullopt);
  leader.hear(2, print_news(NodeNews{.number = 1, .fold = fold, .pids = {{4, 8}, {5, 12}}}), {});
  EXPECT_EQ(leader.pids({{0, 9}, {1, 11}}), (std::map<int, std::uint32_t>{{1, 11}, {5, 12}}));
}

TEST(WorldLooks, ForeignNewsAreBounded) {
  WorldLooks leader(2, 4);
  const io::TimePoint now{5h};
  for (const char* bad : {"", "[]", "{}", R"({"number":-1,"fold":7})", R"({"fold":{"nodes":[]}})"})
    leader.hear(1, bad, now);
  leader.hear(0, R"({"number":1})", now);
  leader.hear(7, R"({"number":1})", now);
  leader.hear(-1, R"({"number":1})", now);
  EXPECT_TRUE(leader.merged({}, now).groups.empty());
  // Ranks that the job does not have.
  const Fold fold{{"n2"}, {{.key = 2, .ranks = {{0, {2, 3, 4, 9}}}}}};
  leader.hear(1, print_news(NodeNews{.number = 1, .fold = fold}), now);
  ASSERT_EQ(leader.merged({}, now).groups.size(), 1U);
  EXPECT_EQ(ranks_of(leader.merged({}, now).groups[0]), (std::vector<int>{2, 3}));
  WorldView view;
  EXPECT_FALSE(view.hear("[1]", now));
  EXPECT_FALSE(view.knows());
  const auto read = read_world_news(print_news(
      WorldNews{.state = "hung", .words = "a\x1b[31m", .alarms = 1, .alarm = "x\n\x1b]0;y"}));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->words.find('\x1b'), std::string::npos);
  EXPECT_EQ(read->alarm.find('\x1b'), std::string::npos);
  EXPECT_EQ(std::count(read->alarm.begin(), read->alarm.end(), '\n'), 1);
  EXPECT_FALSE(read_world_news(std::string(300U << 10, ' ') + "{}"));
}

// The fold of all nodes goes to many nodes, so it goes more seldom.
TEST(WorldLooks, ALargeWorldHearsTheFoldsLessOften) {
  WorldTeller teller(1000, {.bytes_per_second = 64U << 10});
  const io::TimePoint start{5h};
  int folds = 0;
  int sent = 0;
  for (int second = 0; second < 60; ++second) {
    const Fold fold{{"n1"}, {{.key = static_cast<std::uint64_t>(second), .ranks = {{0, {0}}}}}};
    const auto news = teller.feed({.state = "training", .fold = fold}, start + second * 1s);
    if (news) ++sent;
    if (news && news->fold) ++folds;
  }
  EXPECT_GE(folds, 10);
  EXPECT_LE(folds, 40);
  EXPECT_LE(sent, 60);
}

// 4,096 ranks on 512 agents: at most 50 ms of the leader for a look.
TEST(WorldLooks, FiveHundredNodesAreMergedQuickly) {
  constexpr int kMany = 512;
  WorldLooks leader(kMany, kMany * 8);
  const io::TimePoint now{5h};
  Fold own;
  for (int node = 0; node < kMany; ++node) {
    Group waiting{.key = 1, .place = {.line = "train.py:88", .function = "step"}, .quiet = 4000ms};
    Group own_code{.key = static_cast<std::uint64_t>(2 + node % 5), .quiet = 4000ms};
    for (int rank = node * 8; rank < node * 8 + 7; ++rank)
      waiting.ranks[0].push_back(rank);
    own_code.ranks[0].push_back(node * 8 + 7);
    const Fold fold{{"node-" + std::to_string(node)}, {waiting, own_code}};
    if (node == 0) own = fold;
    leader.hear(node, print_news(NodeNews{.number = 1, .fold = fold}), now);
  }
  const auto start = std::chrono::steady_clock::now();
  const Fold all = leader.merged(own, now);
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(count_alive(all), 4096U);
  EXPECT_EQ(all.groups.size(), 6U);
  EXPECT_LE(fold_json(all).size(), kMostFoldNews);
  EXPECT_LT(took, 500ms);  // generous: sanitizers, loaded machines
  RecordProperty(
      "merge_us",
      static_cast<int>(std::chrono::duration_cast<std::chrono::microseconds>(took).count()));
}

}  // namespace
}  // namespace lockstep::looks
