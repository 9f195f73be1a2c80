// Replacements for lost nodes, and agents of another program, which are turned away.
#include "coordinator_testing.h"

namespace lockstep::rendezvous::hub {
namespace {
using testing::nodes;
using namespace std::chrono_literals;

struct ReplacementFixture : testing::CoordinatorFixture {
  explicit ReplacementFixture(CoordinatorSettings with) : CoordinatorFixture(std::move(with)) {
    replacement = true;
  }
  void launches(const std::string& name, const std::string& program) {
    arrive(name).offer.launched = {program, 2, false, "1.0"};
  }
  int restarts(const std::string& name) const {
    const Round* round = agents.at(name).round();
    return round == nullptr ? -1 : round->restarts;
  }
};

TEST(Replacement, ALostNodeCostsARestartAndTheNextOneTakesItsPlace) {
  ReplacementFixture f(nodes(3, 3));
  for (const char* name : {"a", "b", "c"})
    f.arrive(name).offer.join_timeout_ms = 60'000;
  f.join_all({"a", "b", "c"});
  f.lose("b");
  const std::string told =
      "rejoin: b is gone: the connection was closed; restart 1 of 3, and up to 60 s for another "
      "node to take its place";
  EXPECT_EQ(f.told("a"), told);
  EXPECT_EQ(f.told("c"), told);
  f.join_all({"c", "a"});
  f.pass(10s);
  EXPECT_EQ(f.agents["a"].status,
            "2 of 3 nodes have joined (a, c), 1 missing: a new node may replace a lost one "
            "(b is gone: the connection was closed) for another 50 s");
  f.join("new");
  EXPECT_EQ(f.rank("a"), 0);
  EXPECT_EQ(f.rank("new"), 1);
  EXPECT_EQ(f.rank("c"), 2);
  EXPECT_EQ(f.restarts("new"), 1);
  EXPECT_EQ(f.restarts("a"), 1);
  f.lose("c");
  f.join_all({"a", "new"});
  f.pass(1s);
  EXPECT_EQ(f.agents["a"].status.find("b is gone"), std::string::npos) << f.agents["a"].status;
}

TEST(Replacement, WithoutARestartLeftItIsTheEnd) {
  ReplacementFixture f(nodes(2, 2));
  f.arrive("b").offer.max_restarts = 1;
  f.join_all({"a", "b"});
  f.lose("b");
  f.arrive("c").offer.max_restarts = 1;
  f.join_all({"a", "c"});
  EXPECT_EQ(f.restarts("a"), 1);
  f.lose("c");
  EXPECT_EQ(f.told("a"), "end: c is gone: the connection was closed; 1 node is left of at least 2");
}

TEST(Replacement, OneNodeThatWantsNoneIsEnough) {
  ReplacementFixture f(nodes(2, 2));
  f.arrive("a").offer.replacement = false;
  f.join_all({"a", "b"});
  f.lose("b");
  EXPECT_EQ(f.told("a"), "end: b is gone: the connection was closed; 1 node is left of at least 2");
}

TEST(Replacement, AllThatIsLostAtOnceCostsOneRestart) {
  ReplacementFixture f(nodes(4, 4));
  f.join_all({"a", "b", "c", "d"});
  f.say("a", Failed{0, false, "rank 0 on a failed"});  // a notices the losses first
  f.lose("b");
  f.lose("c");
  f.join_all({"a", "d", "x", "y"});
  EXPECT_EQ(f.restarts("a"), 1);
  f.lose("x");
  f.say("a", Failed{1, false, "rank 0 on a failed"});
  f.lose("y");
  f.join_all({"a", "d", "v", "w"});
  EXPECT_EQ(f.restarts("a"), 2);
}

TEST(Replacement, AFreeRejoinBecomesACountedOneWhenTheNodeStaysAway) {
  ReplacementFixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  f.say("b", Leave{Leave::How::returns});
  f.join("a");
  f.pass(11s);
  EXPECT_EQ(f.refused("a"), "-");
  f.join("c");
  EXPECT_EQ(f.rank("c"), 1);
  EXPECT_EQ(f.restarts("a"), 1);
}

TEST(Replacement, ANodeThatWasStoppedIsReplacedAndItsHostIsNot) {
  ReplacementFixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  f.say("b", Leave{Leave::How::stopped});
  EXPECT_EQ(f.told("a").find("rejoin: b was stopped; restart 1 of 3"), 0U) << f.told("a");
  f.join_all({"a", "c"});
  EXPECT_EQ(f.rank("c"), 1);
  f.say("a", Leave{Leave::How::stopped});
  EXPECT_EQ(f.told("c"), "end: a, the host of the rendezvous, was stopped");
}

TEST(Replacement, WithoutAnybodyWhoWouldWaitItIsTheEnd) {
  ReplacementFixture f(nodes(2, 2));
  f.join_all({"a", "b"});
  f.lose("b");
  EXPECT_FALSE(f.hub->over());
  f.lose("a");
  EXPECT_TRUE(f.hub->over());
}

TEST(Replacement, WhoWaitsInVainIsToldForWhom) {
  ReplacementFixture f(nodes(2, 2));
  f.arrive("a").offer.join_timeout_ms = 3000;
  f.join_all({"a", "b"});
  f.lose("b");
  f.join("a");
  f.pass(4s);
  EXPECT_EQ(f.refused("a").find("joining the rendezvous 'job' timed out after 3 s: 1 of 2 nodes "
                                "have joined (a), 1 missing: a new node may replace a lost one (b "
                                "is gone: the connection was closed)"),
            0U)
      << f.refused("a");
}

TEST(Replacement, AVoteThatLeavesIsNoLostNode) {
  ReplacementFixture f(nodes(2, 2));
  f.arrive("a").offer.join_timeout_ms = 3000;
  f.join_all({"a", "b"});
  f.hub->count_vote_only(f.arrive("the client").peer, f.now);
  f.lose("b");
  f.join("a");
  f.lose("the client");
  f.pass(4s);
  EXPECT_NE(f.refused("a").find("(b is gone: the connection was closed)"), std::string::npos)
      << f.refused("a");
}

TEST(Replacement, NobodyStandsInForNodesThatHadFinishedAndLeft) {
  ReplacementFixture f(nodes(3, 3));
  f.join_all({"a", "b", "c"});
  f.say("c", Finish{0});
  f.lose("c");
  f.lose("b");
  EXPECT_EQ(f.told("a").find("end: b is gone"), 0U) << f.told("a");
}

TEST(Replacement, AfterATakeoverTheNodeThatLedIsReplacedToo) {
  auto settings = nodes(2, 2);
  settings.takeover = true;
  settings.first_round = 5;
  settings.last_lead = 0;
  settings.last_lead_called = "b";
  ReplacementFixture f(settings);
  Join& offer = f.arrive("a").offer;
  offer.last_round = 4;
  offer.last_rank = 1;
  offer.last_nodes = 2;
  offer.holds = Join::Holds::running;
  f.join("a");
  f.pass(2s);
  EXPECT_EQ(f.told("a").find("rejoin: b, which led the rendezvous, is gone; restart 1 of 3"), 0U)
      << f.told("a");
  offer.holds = Join::Holds::nothing;
  f.join_all({"a", "c"});
  EXPECT_EQ(f.restarts("a"), 1);
  EXPECT_EQ(f.rank("c"), 0);
  EXPECT_EQ(f.rank("a"), 1);
}

// --- who may take part ---

TEST(Strangers, AnotherProgramIsTurnedAwayEvenAsASpare) {
  ReplacementFixture f(nodes(2, 2));
  f.launches("a", "train.py");
  f.launches("b", "train.py");
  f.launches("c", "eval.py");
  f.join_all({"a", "c"});
  EXPECT_EQ(f.refused("c"),
            "c launches eval.py, a launches train.py, both as role 'default' of the job 'job'");
  EXPECT_TRUE(f.agents["c"].closed);
  f.join("b");
  EXPECT_EQ(f.rank("b"), 1);
  f.launches("d", "eval.py");
  f.join("d");
  EXPECT_NE(f.refused("d").find("d launches eval.py"), std::string::npos);
  f.launches("e", "eval.py");
  f.agents["e"].offer.launched.any = true;
  f.join("e");
  EXPECT_EQ(f.refused("e"), "-");
}

TEST(Strangers, OneThatCameFirstAfterATakeoverGoes) {
  auto settings = nodes(2, 2);
  settings.takeover = true;
  settings.first_round = 5;
  ReplacementFixture f(settings);
  f.launches("x", "eval.py");
  f.join("x");
  f.launches("a", "train.py");
  f.agents["a"].offer.last_round = 4;
  f.agents["a"].offer.last_nodes = 2;
  f.join("a");
  EXPECT_EQ(f.refused("a"), "-");
  EXPECT_EQ(f.refused("x"),
            "a launches train.py, x launches eval.py, both as role 'default' of the job 'job'");
}

TEST(Strangers, OtherDifferencesAreToldToAll) {
  ReplacementFixture f(nodes(2, 2));
  f.launches("a", "train.py");
  f.launches("b", "train.py");
  f.agents["b"].offer.launched.arguments = 3;
  f.agents["b"].offer.max_restarts = 1;
  f.join_all({"a", "b"});
  for (const char* name : {"a", "b"})
    EXPECT_EQ(f.agents[name].round()->notes,
              (std::vector<std::string>{
                  "the nodes differ in --max-restarts, the lowest counts: 1 (b), 3 (a)",
                  "train.py is launched with different numbers of arguments: 2 (a), 3 (b)"}));
}

}  // namespace
}  // namespace lockstep::rendezvous::hub
