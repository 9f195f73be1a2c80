#include "slurm/bad_node_notes.h"

#include "base/environment.h"
#include "base/log.h"
#include "io/dialer.h"
#include "io/fd.h"
#include "io/folder_names.h"
#include "slurm/bad_node_file.h"
#include "slurm/preflight_text.h"

#include <errno.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace lockstep::slurm {
namespace {

// Below kThreshold: a doubt excludes a node only if another follows within a day.
constexpr double kDoubt = 0.4;

// Returns whether a node's machine is up, by a connection to the port of slurmd. A refused
// connection proves a running machine as well.
bool answers(const std::string& node) {
  constexpr int kSlurmd = 6818;
  io::Loop loop;
  bool there = false;
  io::DialRules rules;
  // Short, because the batch step waits for several nodes in a row before the job can end.
  rules.patience = std::chrono::milliseconds(1'500);
  rules.once = true;
  io::Dialer dialer(loop, {"connect to " + node, node, kSlurmd}, rules,
                    {.connected =
                         [&](const io::Fd&) {
                           there = true;
                           loop.stop();
                         },
                     .round_failed = {},
                     .gave_up =
                         [&](const Error& error) {
                           there = error.sys == ECONNREFUSED;
                           loop.stop();
                         }});
  loop.run();
  return there;
}

// Returns the path of the decision. A launch in a user's own script may be any step of the job, and
// the file's name then ends with the number of the step.
std::string preflight_file(const JobFolder& folder, int run) {
  std::string path = folder.preflight(run);
  if (access(path.c_str(), F_OK) == 0) return path;
  for (const std::string& name : io::names_in(folder.path()))
    if (std::string step = folder.at(name); step.starts_with(path + ".")) return step;
  return path;
}

PreflightDecision preflight_of(const JobFolder& folder, int run) {
  const auto text = io::read_file(preflight_file(folder, run), 16U << 20);
  return text ? decision_from_text(*text).value_or(PreflightDecision{}) : PreflightDecision{};
}

}  // namespace

std::vector<NodeFailure> failures_of(const PreflightDecision& preflight, const Verdict& verdict,
                                     const std::string& own_host,
                                     const std::function<bool(const std::string&)>& there) {
  // Each question to a dead node costs 1.5 s at the end of the job.
  constexpr std::size_t kMostAsked = 4;
  std::vector<NodeFailure> failures;
  for (const LeftOut& each : preflight.left_out)
    failures.push_back({.cluster = {},
                        .node = each.node,
                        .weight = each.bad ? 1 : kDoubt,
                        .cause = "pre-flight: " + each.why});
  // After other endings agents may have been killed before reporting. Silence blames no node then.
  if (verdict.cause != Cause::node_lost && verdict.cause != Cause::success &&
      verdict.cause != Cause::worker)
    return failures;
  std::size_t asked = 0;
  for (const std::string& node : verdict.silent) {
    const bool known = std::any_of(failures.begin(), failures.end(),
                                   [&](const NodeFailure& each) { return each.node == node; });
    // If the machine answers, only the agent has died, and the job itself may be the cause. Blame
    // the node half.
    if (known || node == own_host || ++asked > kMostAsked) continue;
    const bool alive = there(node);
    failures.push_back(
        {.cluster = {},
         .node = node,
         .weight = alive ? kDoubt : 1,
         .cause = alive ? "the node's agent ended without a report" : "lost under a job"});
  }
  return failures;
}

std::vector<std::string> note_bad_nodes(const JobFolder& folder, const BatchState& state,
                                        const Verdict& verdict) {
  const PreflightDecision preflight = preflight_of(folder, state.run);
  const std::string cluster = env_text("SLURM_CLUSTER_NAME");
  // The job's folder is STATE/slurm/ID, and the failures are in STATE.
  const std::string place = std::filesystem::path(folder.path()).parent_path().parent_path();
  for (NodeFailure& failure :
       failures_of(preflight, verdict, env_text("SLURMD_NODENAME"), answers)) {
    failure.cluster = cluster;
    failure.time = state.ended_ms / 1000;
    if (const Status noted = note_bad_node(place, failure); !noted)
      log::warning("node {} is not remembered as a bad node: {}", failure.node,
                   noted.error().message);
  }
  return unfit_nodes(folder, state.run);
}

std::vector<std::string> unfit_nodes(const JobFolder& folder, int run) {
  std::vector<std::string> names;
  for (const LeftOut& each : preflight_of(folder, run).left_out)
    if (each.bad) names.push_back(each.node);
  return names;
}

}  // namespace lockstep::slurm
