#include "slurm/verdict.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

NodeReport failed(const std::string& node, int code, std::int64_t at) {
  return {.node = node,
          .outcome = Outcome::failed,
          .code = code,
          .root_cause = node + " failed",
          .failed_ms = at};
}

TEST(Verdict, TheFirstFailureIsTheJobs) {
  const Verdict verdict =
      judge({.step_code = 143}, {failed("n2", 143, 20), failed("n1", 7, 10)}, {"n1", "n2", "n3"});
  EXPECT_EQ(verdict.cause, Cause::worker);
  EXPECT_EQ(verdict.code, 7);
  EXPECT_EQ(verdict.words, "n1 failed");
  EXPECT_EQ(verdict.silent, std::vector<std::string>{"n3"});
}

TEST(Verdict, AReplacedNodeIsNoFailure) {
  const Verdict verdict =
      judge({.step_code = 1}, {{.node = "n1", .outcome = Outcome::succeeded}}, {"n1", "n2"});
  EXPECT_EQ(verdict.cause, Cause::success);
  EXPECT_EQ(verdict.code, 0);
  EXPECT_EQ(verdict.silent, std::vector<std::string>{"n2"});
}

TEST(Verdict, TheLimitAndTheUserAreToldApart) {
  const std::vector<NodeReport> stopped = {{.node = "n1", .outcome = Outcome::interrupted}};
  EXPECT_EQ(judge({.lead_signal = true, .stop_signal = true}, stopped, {}).cause,
            Cause::time_limit);
  EXPECT_EQ(judge({.lead_signal = true}, stopped, {}).code, 124);
  EXPECT_EQ(judge({.stop_signal = true}, stopped, {}).cause, Cause::stopped);
  EXPECT_EQ(judge({}, stopped, {}).code, 143);
  // Slurm's SIGTERM reached a rank before the agent knew.
  EXPECT_EQ(judge({.lead_signal = true}, {failed("n1", 143, 1)}, {}).cause, Cause::time_limit);
  EXPECT_EQ(judge({.lead_signal = true}, {failed("n1", 7, 1)}, {}).cause, Cause::worker);
  EXPECT_EQ(judge({}, {failed("n1", 143, 1)}, {}).cause, Cause::worker);
}

TEST(Verdict, NodesThatSayNothing) {
  EXPECT_EQ(judge({.step_code = 0}, {}, {"n1"}).cause, Cause::not_started);
  EXPECT_EQ(judge({.step_code = 0}, {}, {"n1"}).code, 1);
  EXPECT_EQ(judge({.step_code = 9}, {}, {"n1"}).code, 9);
  const std::vector<NodeReport> lost = {
      {.node = "n1", .outcome = Outcome::failed, .reason = "n2 is gone"}};
  EXPECT_EQ(judge({}, lost, {"n1", "n2"}).cause, Cause::node_lost);
  EXPECT_EQ(judge({}, lost, {"n1", "n2"}).words, "n2 is gone");
}

// All agents of the job report the hang, and all but one as the reason of another node.
TEST(Verdict, AHangIsNoLostNode) {
  const auto verdict = [](const std::string& end, const std::string& reason = "hung for 31 s") {
    const std::string report =
        R"({"outcome":"failed","reason":")" + reason + R"(","attempts":[{"ended_by":"nodes"})";
    const auto far = read_report(report + "]}");
    const auto near =
        read_report(report + R"(,{"ended_by":")" + end + R"(","why":"hung for 31 s"}]})");
    return judge({.step_code = 1}, {*far, *near}, {});
  };
  EXPECT_EQ(verdict("hang").cause, Cause::hang);
  EXPECT_EQ(verdict("hang").words, "hung for 31 s");
  EXPECT_EQ(verdict("hang").code, 1);
  EXPECT_EQ(verdict("watchdog").cause, Cause::watchdog);
  for (const char* other : {"nodes", "later", ""})
    EXPECT_EQ(verdict(other).cause, Cause::node_lost) << other;
  // --on-hang restart was stopping the workers when a node was lost.
  EXPECT_EQ(verdict("hang", "n2 is gone").cause, Cause::node_lost);
  const RequeueRule rule{.asked = true};
  EXPECT_FALSE(is_requeued(rule, Cause::hang, {}));
  EXPECT_FALSE(is_requeued(rule, Cause::watchdog, {}));
}

// The ranks of a node lose their peers before their agent hears of the hang.
TEST(Verdict, AHangComesBeforeTheFailuresThatFollow) {
  const NodeReport hung{.node = "n1",
                        .outcome = Outcome::failed,
                        .last_end = AttemptEnd::hang,
                        .last_why = "hung for 31 s"};
  EXPECT_EQ(judge({.step_code = 1}, {failed("n2", 1, 10), hung}, {}).cause, Cause::hang);
}

TEST(Verdict, AWorkerThatCannotBeStartedIsNoLostNode) {
  const std::vector<NodeReport> reports = {
      {.node = "n1", .outcome = Outcome::failed, .reason = "workers on n2 could not be started: x"},
      {.node = "n2", .outcome = Outcome::not_started, .reason = "workers could not be started: x"}};
  EXPECT_EQ(judge({.step_code = 1}, reports, {"n1", "n2"}).cause, Cause::not_started);
  EXPECT_EQ(judge({.step_code = 1}, reports, {"n1", "n2"}).words,
            "n2: workers could not be started: x");
}

TEST(Verdict, NodesThatNeverMeetAreLostOnlyIfOneIsSilentOrTheyHadMet) {
  NodeReport waited{.node = "n1", .outcome = Outcome::no_rendezvous, .reason = "waited for 600 s"};
  EXPECT_EQ(judge({.step_code = 1}, {waited}, {"n1"}).cause, Cause::not_started);
  EXPECT_EQ(judge({.step_code = 1}, {waited}, {"n1"}).words, "n1: waited for 600 s");
  EXPECT_EQ(judge({.step_code = 1}, {waited}, {"n1", "n2"}).cause, Cause::node_lost);
  waited.nodes = 2;
  EXPECT_EQ(judge({.step_code = 1}, {waited}, {"n1"}).cause, Cause::node_lost);
}

TEST(Verdict, ANodeLostAfterTheNodesHadMetOutranksOneThatRefused) {
  const std::vector<NodeReport> reports = {
      {.node = "n2", .outcome = Outcome::refused, .reason = "no container"},
      {.node = "n1", .outcome = Outcome::no_rendezvous, .reason = "n3 is gone", .nodes = 2}};
  EXPECT_EQ(judge({.step_code = 126}, reports, {}).cause, Cause::node_lost);
  EXPECT_EQ(judge({.step_code = 126}, reports, {}).words, "n1: n3 is gone");
}

TEST(Verdict, AnAgentThatDidNotBeginSaysWhy) {
  const std::vector<NodeReport> refused = {
      {.node = "n2", .outcome = Outcome::refused, .reason = "can't open script 'a.py'"}};
  EXPECT_EQ(judge({.step_code = 1}, refused, {}).cause, Cause::not_started);
  EXPECT_EQ(judge({.step_code = 1}, refused, {}).words, "n2: can't open script 'a.py'");
}

// The batch step has ended the agents that would have waited for n2.
TEST(Verdict, ANodeThatRefusesExplainsWhyTheOthersWereEnded) {
  std::vector<NodeReport> reports = {
      {.node = "n1", .outcome = Outcome::interrupted},
      {.node = "n2", .outcome = Outcome::refused, .reason = "no container"}};
  EXPECT_EQ(judge({.step_code = 126}, reports, {}).cause, Cause::not_started);
  EXPECT_EQ(judge({.step_code = 126}, reports, {}).code, 126);
  EXPECT_EQ(judge({.step_code = 126}, reports, {}).words, "n2: no container");
  EXPECT_EQ(judge({.stop_signal = true}, reports, {}).cause, Cause::stopped);
  reports[0].nodes = 1;
  EXPECT_EQ(judge({.step_code = 143}, reports, {}).cause, Cause::stopped) << "the rest has trained";
}

TEST(Verdict, AJobCannotBeginWithoutItsNodes) {
  const NodeReport refused{.node = "n1", .outcome = Outcome::refused};
  const NodeReport left_out{.node = "n2", .outcome = Outcome::left_out};
  const NodeReport failed{.node = "n3", .outcome = Outcome::failed};
  EXPECT_FALSE(lacks_nodes({failed}, 0, "n0"));
  EXPECT_FALSE(lacks_nodes({left_out}, 0, "n0")) << "the pre-flight has seen to it";
  EXPECT_TRUE(lacks_nodes({failed, refused}, 0, "n0"));
  EXPECT_FALSE(lacks_nodes({refused}, 1, "n0"));
  EXPECT_TRUE(lacks_nodes({refused}, 1, "n1")) << "the others wait to meet there";
  EXPECT_TRUE(lacks_nodes({refused, left_out}, 1, "n1"));
  EXPECT_FALSE(lacks_nodes({refused, left_out}, 2, "n1")) << "the others meet elsewhere";
  EXPECT_FALSE(lacks_nodes({refused}, 1, "")) << "they meet at no node of the job";
  const NodeReport trained{.node = "n4", .outcome = Outcome::failed, .nodes = 2};
  EXPECT_FALSE(lacks_nodes({refused, trained}, 1, "n1")) << "they have met elsewhere";
}

TEST(Verdict, AllThatTookPartHaveReported) {
  const auto report = [](int nodes) {
    return NodeReport{.node = "n", .outcome = Outcome::failed, .nodes = nodes};
  };
  EXPECT_FALSE(have_all_reported({}));
  EXPECT_FALSE(have_all_reported({report(0)}));  // a spare alone
  EXPECT_FALSE(have_all_reported({report(2), report(0)}));
  EXPECT_TRUE(have_all_reported({report(2), report(0), report(2)}));
  // A node has left, and two others went on.
  EXPECT_FALSE(have_all_reported({report(3), report(2)}));
  EXPECT_TRUE(have_all_reported({report(3), report(2), report(2)}));
}

TEST(Verdict, AReportSaysHowManyNodesTookPart) {
  const auto nodes = [](const std::string& attempts) {
    return read_report(R"({"node": "n1", "outcome": "succeeded")" + attempts + "}")->nodes;
  };
  EXPECT_EQ(nodes(""), 0);
  EXPECT_EQ(nodes(R"(, "attempts": [])"), 0);
  EXPECT_EQ(nodes(R"(, "attempts": [{"nodes": 3}, {"nodes": 2}])"), 2);
  EXPECT_EQ(nodes(R"(, "attempts": [7])"), 0);
  EXPECT_EQ(nodes(R"(, "attempts": [{"nodes": -7}])"), 0);
}

TEST(Requeue, ByCauseAndBudget) {
  const RequeueRule rule{.asked = true, .most_losses = 2};
  EXPECT_TRUE(is_requeued(rule, Cause::time_limit, {"time limit", "time limit", "time limit"}));
  EXPECT_TRUE(is_requeued(rule, Cause::node_lost, {"time limit", "node lost"}));
  EXPECT_FALSE(is_requeued(rule, Cause::node_lost, {"node lost", "node lost"}));
  EXPECT_TRUE(is_requeued(rule, Cause::unfit, {"bad node"}));
  EXPECT_FALSE(is_requeued(rule, Cause::unfit, {"bad node", "node lost"}));
  for (const Cause cause : {Cause::success, Cause::worker, Cause::stopped, Cause::not_started})
    EXPECT_FALSE(is_requeued(rule, cause, {}));
  EXPECT_FALSE(is_requeued({}, Cause::time_limit, {}));
}

TEST(Requeue, AChainCountsItsTimeLimitsAlone) {
  const RequeueRule rule{.asked = true, .most_losses = 1, .most_limits = 2};
  const std::vector<std::string> others = {"preempted", "node lost", "cut off", "time limit"};
  EXPECT_TRUE(is_requeued(rule, Cause::time_limit, others));
  EXPECT_FALSE(is_requeued(rule, Cause::time_limit, {"time limit", "preempted", "time limit"}));
  EXPECT_TRUE(is_requeued(rule, Cause::node_lost, {"time limit", "time limit", "preempted"}));
  EXPECT_FALSE(is_requeued(rule, Cause::node_lost, others));
  for (const Cause cause : {Cause::success, Cause::worker, Cause::stopped, Cause::script})
    EXPECT_FALSE(is_requeued(rule, cause, {}));
}

TEST(Verdict, ReadsAReport) {
  const auto report = read_report(
      R"({"outcome":"failed","node":"n2","reason":null,)"
      R"("root_cause":{"rank":3,"host":"n2","exit_code":-9,"time_ms":5,"message":"killed\nby"}})");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->code, 137);
  EXPECT_EQ(report->root_cause, "rank 3 on n2 was killed by signal 9: killed");
  EXPECT_EQ(report->failed_ms, 5);
  // The other ranks were stopped because of this failure.
  const auto stopped = read_report(
      R"({"outcome":"failed","node":"n1",)"
      R"("root_cause":{"rank":1,"host":"n1","exit_code":-15,"time_ms":4,"after_stop":true}})");
  ASSERT_TRUE(stopped);
  EXPECT_FALSE(stopped->code);
  EXPECT_EQ(stopped->outcome, Outcome::failed);
  EXPECT_EQ(read_report(R"({"outcome":"left out"})")->outcome, Outcome::left_out);
  EXPECT_EQ(read_report(R"({"outcome":"unfit"})")->outcome, Outcome::unfit);
  EXPECT_EQ(read_report(R"({"outcome":"spare"})")->outcome, Outcome::other);
  EXPECT_FALSE(read_report(R"({"outcome":""})"));
  EXPECT_FALSE(read_report(R"({"outcome":7})"));
  EXPECT_FALSE(read_report("[]"));
  EXPECT_FALSE(read_report("{"));
}

TEST(VerdictTest, AScriptEndsTheJobWithItsOwnCode) {
  const Verdict worker{Cause::worker, 7, "rank 3 exited with 7", {}};
  const Verdict success{Cause::success, 0, "all ranks have succeeded", {}};
  const auto judged = [](BatchFacts facts, const std::optional<Verdict>& launch) {
    const Verdict verdict = judge_script(facts, launch);
    return std::pair(verdict.cause, verdict.code);
  };
  EXPECT_EQ(judged({.step_code = 0}, std::nullopt), std::pair(Cause::success, 0));
  // A script may continue after a failed launch and succeed.
  EXPECT_EQ(judged({.step_code = 0}, worker), std::pair(Cause::success, 0));
  EXPECT_EQ(judged({.step_code = 7}, worker), std::pair(Cause::worker, 7));
  EXPECT_EQ(judged({.step_code = 1}, worker), std::pair(Cause::worker, 1));
  EXPECT_EQ(judged({.step_code = 3}, success), std::pair(Cause::script, 3));
  EXPECT_EQ(judged({.step_code = 127}, std::nullopt), std::pair(Cause::script, 127));
  EXPECT_EQ(judged({.step_code = 1, .lead_signal = true},
                   Verdict{Cause::node_lost, 1, "a node is lost", {"n2"}}),
            std::pair(Cause::time_limit, 124));
  EXPECT_EQ(judged({.step_code = 143, .stop_signal = true}, worker),
            std::pair(Cause::stopped, 143));
  EXPECT_EQ(judge_script({.step_code = 1}, Verdict{Cause::node_lost, 1, "lost", {"n2"}}).silent,
            std::vector<std::string>{"n2"});
}

TEST(VerdictTest, ALaunchThatOutlivesItsScript) {
  const Verdict ended = judge_orphan({Cause::success, 0, "all ranks have succeeded", {}}, "n1");
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.words,
            "all ranks have succeeded; the script's later commands did not run, because its shell "
            "died with n1");
  const Verdict failed = judge_orphan({Cause::worker, 7, "rank 3 exited with 7", {}}, "n1");
  EXPECT_EQ(failed.words, "rank 3 exited with 7");
  EXPECT_EQ(failed.code, 7);
  EXPECT_TRUE(failed.noted);
}

}  // namespace
}  // namespace lockstep::slurm
