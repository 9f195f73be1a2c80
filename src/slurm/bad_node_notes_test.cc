#include "slurm/bad_node_notes.h"

#include "io/fd.h"
#include "slurm/preflight_text.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

namespace lockstep::slurm {
namespace {

Verdict verdict(Cause cause, std::vector<std::string> silent) {
  Verdict made;
  made.cause = cause;
  made.silent = std::move(silent);
  return made;
}

// "n1 1: cause"
std::vector<std::string> noted(const PreflightDecision& preflight, const Verdict& verdict) {
  std::vector<std::string> texts;
  for (const NodeFailure& each :
       failures_of(preflight, verdict, "own", [](const std::string& node) { return node == "up"; }))
    texts.push_back(each.node + (each.weight > kThreshold ? " out: " : " once: ") + each.cause);
  return texts;
}

using Texts = std::vector<std::string>;

TEST(BadNodeNotes, LostNodesAreNoted) {
  EXPECT_EQ(
      noted({}, verdict(Cause::node_lost, {"n1", "own", "up"})),
      (Texts{"n1 out: lost under a job", "up once: the node's agent ended without a report"}));
  EXPECT_EQ(noted({}, verdict(Cause::success, {"n1"})).size(), 1U);
}

TEST(BadNodeNotes, WhoWasStoppedIsNoBadNode) {
  for (const Cause cause : {Cause::stopped, Cause::time_limit, Cause::not_started})
    EXPECT_TRUE(noted({}, verdict(cause, {"n1", "n2"})).empty());
  EXPECT_TRUE(noted({}, verdict(Cause::worker, {})).empty());
}

TEST(BadNodeNotes, NodesThatThePreflightLeftOut) {
  const PreflightDecision left{.ends = false,
                               .left_out = {{"n1", "no torch", true}, {"n2", "late", false}}};
  EXPECT_EQ(noted(left, verdict(Cause::stopped, {"n1"})),
            (Texts{"n1 out: pre-flight: no torch", "n2 once: pre-flight: late"}));
  EXPECT_EQ(noted(left, verdict(Cause::success, {"n1", "n2"})).size(), 2U);
}

TEST(BadNodeNotes, ALaunchMayBeAnyStepOfItsJob) {
  const JobFolder folder(::testing::TempDir() + "bad_node_notes." + std::to_string(getpid()));
  std::filesystem::create_directories(folder.path());
  const PreflightDecision left{.ends = false,
                               .left_out = {{"n1", "no torch", true}, {"n2", "late", false}}};
  ASSERT_TRUE(io::write_file(folder.preflight(1) + ".3", decision_text(left)));
  EXPECT_EQ(unfit_nodes(folder, 1), Texts{"n1"});
  EXPECT_EQ(unfit_nodes(folder, 0), Texts{});
  std::filesystem::remove_all(folder.path());
}

}  // namespace
}  // namespace lockstep::slurm
