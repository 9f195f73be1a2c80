#include "slurm/preflight.h"

#include "slurm/preflight_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace lockstep::slurm {
namespace {

using Names = std::vector<std::string>;

NodeFacts healthy() {
  NodeFacts facts;
  facts.clock_ms = facts.arrived_ms = 1'000'000;
  facts.temp = {.path = "/tmp", .free_mib = 9'000, .total_mib = 10'000};
  facts.job = {.path = "/home/job", .free_mib = 9'000, .total_mib = 10'000};
  facts.shared_memory = {.path = "/dev/shm", .free_mib = 9'000, .total_mib = 10'000};
  facts.python = {.asked = true,
                  .finished = true,
                  .path = "/usr/bin/python3",
                  .version = "3.11.2",
                  .torch = "2.6.0"};
  return facts;
}

Names names(int count) {
  Names nodes;
  for (int i = 0; i < count; ++i)
    nodes.push_back("n" + std::to_string(i));
  return nodes;
}

struct Job {
  explicit Job(int count)
      : nodes(names(count)), facts(static_cast<std::size_t>(count), healthy()) {}
  NodeFacts& at(int node) { return *facts[static_cast<std::size_t>(node)]; }
  // Both directions fail.
  void cut(int one, int two) {
    at(one).unreached.push_back({two, "timed out", Unreached::How::cut});
    at(two).unreached.push_back({one, "timed out", Unreached::How::cut});
  }
  // A silent node out of reach.
  void kill(int node, Unreached::How how = Unreached::How::cut) {
    facts[static_cast<std::size_t>(node)].reset();
    for (std::size_t i = 0; i < facts.size(); ++i)
      if (facts[i]) facts[i]->unreached.push_back({node, "timed out", how});
  }
  PreflightDecision decide(int wanted, int at_least = 0) const {
    return slurm::decide(nodes, facts, {wanted, at_least == 0 ? wanted : at_least});
  }
  Names left_out(int wanted, int at_least = 0) const {
    Names left;
    for (const LeftOut& each : decide(wanted, at_least).left_out)
      left.push_back(each.node);
    return left;
  }
  std::string first_line(int wanted) const {
    const auto lines = decide(wanted).lines;
    return lines.empty() ? "" : lines.front();
  }

  Names nodes;
  AllFacts facts;
};

TEST(Preflight, NothingIsSaidOfHealthyNodes) {
  Job job(3);
  const PreflightDecision decision = job.decide(2);
  EXPECT_FALSE(decision.ends);
  EXPECT_TRUE(decision.left_out.empty());
  EXPECT_TRUE(decision.lines.empty());
  for (auto& facts : job.facts)
    facts->python.torch.clear();
  EXPECT_TRUE(job.decide(2).lines.empty());
}

TEST(Preflight, ABadNodeIsLeftOutForASpareElseTheJobEnds) {
  Job job(3);
  job.at(1).python.torch = "2.1.0";
  EXPECT_EQ(job.left_out(2), Names{"n1"});
  EXPECT_EQ(job.first_line(2),
            "n1: it has PyTorch 2.1.0 (/usr/bin/python3), and n0, n2 have PyTorch 2.6.0; install "
            "the same there; the node is left out");
  EXPECT_FALSE(job.decide(2).ends);
  const PreflightDecision without = job.decide(3);
  EXPECT_TRUE(without.ends);
  EXPECT_EQ(
      without.lines.back(),
      "2 of 3 nodes are fit for the job, which needs 3: the job ends; exclude the bad nodes with "
      "-x, or ask for --spare nodes");
  const PreflightDecision fewer = job.decide(3, 2);
  EXPECT_FALSE(fewer.ends);
  EXPECT_EQ(fewer.left_out.size(), 1U);
  EXPECT_EQ(fewer.lines.back(), "the job goes on with 2 nodes instead of 3");
}

TEST(Preflight, NodesThatCannotStartTheContainerShareALine) {
  Job job(3);
  job.at(0).image_trouble = job.at(2).image_trouble = "--container x needs podman";
  EXPECT_EQ(job.left_out(1), (Names{"n0", "n2"}));
  EXPECT_EQ(job.first_line(1),
            "n0, n2: --container x needs podman; see to it there, or give the image in another "
            "form; the node is left out");
  job.at(1).image_trouble = "--container x needs podman";
  EXPECT_TRUE(job.decide(3).ends);
}

TEST(Preflight, ThePythonOfMostNodesIsRight) {
  Job job(4);
  job.at(0).python.version = "3.9.1";
  EXPECT_EQ(job.left_out(3), Names{"n0"});
  job.at(0).python.version = "3.11.9";
  EXPECT_TRUE(job.left_out(3).empty());
  // With two nodes, the node without PyTorch is at fault.
  Job two(2);
  two.at(0).python.torch.clear();
  EXPECT_EQ(two.left_out(1), Names{"n0"});
}

TEST(Preflight, WhatFailsEverywhereIsNoNodesFault) {
  Job job(2);
  for (auto& facts : job.facts)
    facts->python.trouble = "import torch fails: ImportError: x";
  EXPECT_FALSE(job.decide(2).ends);
  EXPECT_EQ(
      job.first_line(2),
      "n0, n1: import torch fails: ImportError: x; install there the same as on the other nodes");
  job.at(0).python.trouble.clear();
  EXPECT_TRUE(job.decide(2).ends);
}

TEST(Preflight, AModuleThatTheJobNamesMustLoad) {
  Job job(2);
  for (auto& facts : job.facts)
    facts->python.broken = {"ops: ImportError: x"};
  EXPECT_TRUE(job.decide(2).ends);
}

TEST(Preflight, ASlowPythonIsNoReasonToLeaveANodeOut) {
  Job job(3);
  job.at(2).python.finished = false;
  EXPECT_TRUE(job.left_out(2).empty());
  EXPECT_EQ(job.decide(2).lines.size(), 1U);
  job.at(2).python.version.clear();
  EXPECT_EQ(job.left_out(2), Names{"n2"});
  EXPECT_TRUE(job.left_out(3).empty());
}

TEST(Preflight, ASilentNodeIsLeftOutOrWaitedFor) {
  Job job(4);
  job.kill(3, Unreached::How::refused);
  EXPECT_EQ(job.left_out(3), Names{"n3"});
  EXPECT_TRUE(job.left_out(4).empty());
  EXPECT_FALSE(job.decide(4).ends);
  Job cut(4);
  cut.kill(3);
  EXPECT_EQ(cut.left_out(3), Names{"n3"});
  EXPECT_TRUE(cut.decide(4).ends);
  EXPECT_EQ(
      cut.first_line(3),
      "n3: cannot be reached from n0, n1, n2: timed out; check the node's network, and whether "
      "the node is up; the node is left out");
}

// At least half of the trying nodes must fail, because a single trying node may be at fault itself.
TEST(Preflight, OneThatCantReachASilentNodeIsNoProof) {
  for (const int cut_off : {1, 2}) {
    Job job(5);
    job.facts[4].reset();
    for (int i = 0; i < 4; ++i)
      job.at(i).unreached.push_back(
          {4, "no", i < cut_off ? Unreached::How::cut : Unreached::How::refused});
    EXPECT_EQ(job.decide(5).ends, cut_off == 2) << cut_off;
  }
}

TEST(Preflight, OfTwoThatDoNotReachEachOtherTheLaterOneGoes) {
  Job job(4);
  job.cut(1, 2);
  EXPECT_EQ(job.left_out(3), Names{"n2"});
  // The node with the most broken ways is at fault, even if it is the first.
  job.cut(0, 1);
  EXPECT_EQ(job.left_out(3), Names{"n1"});
  Job first(4);
  first.cut(0, 1);
  first.cut(0, 3);
  EXPECT_EQ(first.left_out(3), Names{"n0"});
  EXPECT_EQ(
      first.first_line(3),
      "n0: this node and n1, n3 do not reach each other: timed out; check the network between the "
      "nodes; the node is left out");
  // Another program on the port says nothing about the way to the node.
  Job other(2);
  other.at(0).unreached.push_back({1, "another program answers", Unreached::How::other});
  EXPECT_TRUE(other.decide(2).lines.empty());
}

TEST(Preflight, FoldersThatCantBeWrittenTo) {
  Job job(2);
  job.at(1).temp.free_mib = 3;
  EXPECT_EQ(job.first_line(1).substr(0, 25), "n1: /tmp has 3 MiB left; ");
  job.at(1).temp = {.path = "/tmp", .trouble = "No space left on device"};
  EXPECT_EQ(job.left_out(1), Names{"n1"});
  Job folder(2);
  folder.at(1).job.trouble = "Permission denied";
  EXPECT_TRUE(folder.decide(2).ends);
  Job shared(2);
  shared.at(1).shared_memory.total_mib = 64;
  EXPECT_FALSE(shared.decide(2).ends);
  EXPECT_EQ(shared.decide(2).lines.size(), 1U);
}

TEST(Preflight, GpusThatSlurmGaveMustBeThere) {
  Job job(3);
  for (auto& facts : job.facts)
    facts->gpus_given = 8;
  // GPUs of an unknown kind.
  EXPECT_TRUE(job.decide(3).lines.empty());
  for (auto& facts : job.facts)
    facts->gpus_seen = 8;
  EXPECT_TRUE(job.decide(3).lines.empty());
  job.at(1).gpus_seen = 7;
  EXPECT_EQ(job.first_line(2),
            "n1: 7 of the 8 GPUs that Slurm gave can be used; see to its driver; the node is left "
            "out");
  // PyTorch's count of GPUs overrides the number of device files.
  job.at(1).gpus_seen = 8;
  job.at(1).python.gpus = 0;
  EXPECT_EQ(job.left_out(2), Names{"n1"});
  job.at(1).python.gpus = 8;
  job.at(2).gpu_users = {"pid 12"};
  EXPECT_EQ(job.left_out(2), Names{"n2"});
  EXPECT_FALSE(job.decide(3).ends);
}

TEST(Preflight, LockedMemoryMattersWithGpusAndAFabric) {
  Job job(1);
  job.at(0).memlock_kib = 64;
  job.at(0).fabric = true;
  EXPECT_TRUE(job.decide(1).lines.empty());
  job.at(0).gpus_given = job.at(0).gpus_seen = 1;
  EXPECT_EQ(job.decide(1).lines.size(), 1U);
  job.at(0).memlock_kib = -1;
  EXPECT_TRUE(job.decide(1).lines.empty());
}

TEST(Preflight, AClockThatIsOffIsTold) {
  Job job(4);
  job.at(2).clock_ms += 3'500;
  EXPECT_EQ(job.first_line(3), "n2: the clock is 3.5 s ahead of the others'; have it set by NTP");
  EXPECT_TRUE(job.left_out(3).empty());
  // Compared by the deciding node's clock, which is wrong here.
  Job first(3);
  for (int node = 1; node < 3; ++node)
    first.at(node).arrived_ms += 60'000;
  EXPECT_EQ(first.first_line(3),
            "n0: the clock is 60.0 s ahead of the others'; have it set by NTP");
  job.at(2).clock_ms = job.at(2).arrived_ms + 1'500;
  EXPECT_TRUE(job.decide(3).lines.empty());
}

TEST(Preflight, EqualLinesOfManyNodesAreOne) {
  Job job(40);
  for (auto& facts : job.facts)
    facts->python.finished = false;
  EXPECT_EQ(job.decide(40).lines,
            Names{"n0, n1, n2, n3 and 36 more: PyTorch and the modules have not been imported in "
                  "the time for the pre-flight"});
}

TEST(Preflight, PairsOfManyNodesAreFew) {
  EXPECT_EQ(peers_of(1, 4), (std::vector<int>{0, 2, 3}));
  EXPECT_TRUE(peers_of(0, 1).empty());
  constexpr int kMany = 1000;
  std::vector<int> tried(kMany);
  for (int node = 0; node < kMany; ++node) {
    const auto peers = peers_of(node, kMany);
    EXPECT_LE(peers.size(), 13U);
    for (const int peer : peers) {
      EXPECT_NE(peer, node);
      ++tried[static_cast<std::size_t>(peer)];
    }
  }
  EXPECT_GE(*std::min_element(tried.begin(), tried.end()), 10);
  // A node that is cut off is found.
  Job job(kMany);
  job.facts[500].reset();
  for (int node = 0; node < kMany; ++node) {
    const auto peers = peers_of(node, kMany);
    if (node != 500 && std::count(peers.begin(), peers.end(), 500) > 0)
      job.at(node).unreached.push_back({500, "timed out", Unreached::How::cut});
  }
  EXPECT_EQ(job.left_out(kMany - 1), Names{"n500"});
}

TEST(Preflight, WhoIsCutOffFromMostDoesNotDecide) {
  EXPECT_TRUE(may_decide(0, 2, 4));
  EXPECT_FALSE(may_decide(1, 2, 4));
  EXPECT_TRUE(may_decide(1, 3, 4));
  EXPECT_FALSE(may_decide(0, 1, 4));
  EXPECT_FALSE(may_decide(3, 4, 4));
}

TEST(Preflight, FactsAndDecisionsAreReadAsTheyWereWritten) {
  NodeFacts facts = healthy();
  facts.unreached = {{1, "timed out", Unreached::How::refused}};
  facts.gpu_users = {"pid 1"};
  facts.python.broken = {"a: b"};
  facts.port_trouble = "taken";
  facts.image_trouble = "no podman";
  const auto read = facts_from_text(facts_text(facts), 2);
  ASSERT_TRUE(read);
  EXPECT_EQ(facts_text(*read), facts_text(facts));
  EXPECT_TRUE(facts_from_text(facts_text(facts), 1)->unreached.empty());
  for (const char* text : {"", "[]", "{}", R"({"clock_ms": "x"})", R"({"clock_ms":1,"python":[]})"})
    (void)facts_from_text(text, 2);
  EXPECT_FALSE(facts_from_text("{}", 2));
  // Texts of other nodes reach the job's output.
  facts.python.trouble = facts.unreached[0].why = facts.gpu_users[0] = "a\x1b]0;b\x07";
  const auto other = facts_from_text(facts_text(facts), 2);
  EXPECT_EQ(other->python.trouble, "a\\x1b]0;b\\x07");
  EXPECT_EQ(other->unreached[0].why, "a\\x1b]0;b\\x07");
  EXPECT_EQ(other->gpu_users[0], "a\\x1b]0;b\\x07");

  const PreflightDecision decision{
      .ends = true, .left_out = {{"n1", "why", false}}, .lines = {"a", "b"}};
  const auto same = decision_from_text(decision_text(decision));
  ASSERT_TRUE(same);
  EXPECT_EQ(decision_text(*same), decision_text(decision));
  EXPECT_FALSE(decision_from_text("{"));
}

TEST(Preflight, ThePythonTellsInTwoSteps) {
  PythonAnswer answer;
  take_python_line("warning of some package", answer);
  take_python_line(R"(lockstep:{"version": "3.11.2"})", answer);
  EXPECT_EQ(answer.version, "3.11.2");
  EXPECT_FALSE(answer.finished);
  take_python_line(R"(lockstep:{"torch": "2.6.0", "trouble": "", "gpus": 0, "broken": ["x: y"]})",
                   answer);
  EXPECT_TRUE(answer.finished);
  EXPECT_EQ(answer.torch, "2.6.0");
  EXPECT_EQ(answer.gpus, 0);
  EXPECT_EQ(answer.broken, Names{"x: y"});
  PythonAnswer other;
  take_python_line(R"(lockstep:{"torch": "2.6.0"})", other);
  EXPECT_EQ(other.gpus, -1);
}

}  // namespace
}  // namespace lockstep::slurm
