// How a job in Slurm ended, from what its agents have reported and what Slurm told its batch step,
// and what is to be done about it. Pure.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// The outcome in the reports of a job that its pre-flight ends, and its exit code.
inline constexpr std::string_view kUnfit = "unfit";
inline constexpr int kUnfitCode = 125;
// The outcome of a node that took no part, and whose place a spare has.
inline constexpr std::string_view kLeftOut = "left out";

// Of one agent's report.
struct NodeReport {
  std::string node;              // its host
  std::string outcome;           // "succeeded", "failed", "interrupted", "spare", kLeftOut, kUnfit
  std::string reason = {};       // why, where no worker failed by itself
  std::optional<int> code = {};  // of the worker that failed first, as a shell has it
  std::string root_cause = {};   // "rank 3 (n2) exited with 7"
  std::int64_t failed_ms = 0;    // when it failed; 0: nobody did
  int nodes = 0;                 // that took part in its last attempt; 0: it had none (a spare)
};
// corrupt: it is no report of `lockstep run`.
Result<NodeReport> read_report(std::string_view json);

// Whether the agents of all nodes that still took part have ended. Of nodes that were lost on the
// way nothing is awaited: Slurm itself gives those up minutes later.
bool have_all_reported(const std::vector<NodeReport>& reports);

enum class Cause {
  success,
  worker,       // one failed by itself
  node_lost,    // agents ended for a lack of nodes, or without a word
  time_limit,   // the lead signal came, and the workers were stopped
  stopped,      // by scancel, a preemption, or the limit itself
  unfit,        // by the pre-flight too few nodes are fit for it
  not_started,  // no agent has said anything
  script,       // the user's own script failed by itself
};
std::string_view cause_name(Cause cause);

struct BatchFacts {
  int step_code = 0;         // srun's, as a shell has it
  bool lead_signal = false;  // the time limit is near
  bool stop_signal = false;  // SIGTERM came to the batch step
  int nodes = 0;             // agents that were started
};

struct Verdict {
  Cause cause = Cause::not_started;
  int code = 1;                          // of the job
  std::string words = {};                // one line, for people
  std::vector<std::string> silent = {};  // nodes of `expected` that have no report
  // Of a launch in a user's own script, which has noted its bad nodes itself: those that the
  // pre-flight has found.
  std::vector<std::string> unfit = {};
  bool noted = false;
};
// Whether the job is worth another run, which continues from its last checkpoint. earlier: the
// causes of the runs before this one. A worker's own failure is not: it was restarted in place as
// often as the user allowed. Who stops a job means it, and what Slurm itself stopped it queues
// itself.
struct RequeueRule {
  bool asked = false;                   // --requeue or --chain
  int most_losses = 3;                  // of runs that ended for a lack of nodes
  std::optional<int> most_limits = {};  // of runs that the time limit ended; nullopt: any
};
bool is_requeued(const RequeueRule& rule, Cause cause, const std::vector<std::string>& earlier);

// expected: the names of the step's nodes.
Verdict judge(const BatchFacts& facts, const std::vector<NodeReport>& reports,
              const std::vector<std::string>& expected);

// Of a job whose script is the user's own: what it ends with is what the job ends with, and the
// cause is that of its last launch. facts.step_code: the script's. launch: nullopt: there was none.
Verdict judge_script(const BatchFacts& facts, const std::optional<Verdict>& launch);

// Of a job whose script died with its node, `host`, while `launch` went on to its end.
Verdict judge_orphan(Verdict launch, std::string_view host);

// Of a job whose processes Slurm has ended because its time was up.
Verdict time_limit_verdict();

}  // namespace lockstep::slurm
