// Judges how a job ended, from the reports of its agents and Slurm's signals to the batch step, and
// decides what follows. Pure.
#pragma once

#include "base/error.h"
#include "slurm/agent_report.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// The exit code of a job that the pre-flight has ended.
inline constexpr int kUnfitCode = 125;

// The parts of an agent's report needed for the verdict.
struct NodeReport {
  std::string node;  // its host
  Outcome outcome = Outcome::other;
  std::string reason = {};       // reason, if no worker failed by itself
  std::optional<int> code = {};  // of the first failed worker, as a shell counts
  std::string root_cause = {};   // "rank 3 (n2) exited with 7"
  std::int64_t failed_ms = 0;    // Unix time of the failure; 0: none
  int nodes = 0;                 // nodes in the agent's last attempt; 0: no attempt (a spare)
  AttemptEnd last_end = AttemptEnd::other;  // of that attempt
  std::string last_why = {};                // why it ended
};
// Parses a report. Errors: corrupt (not a report of `lockstep run`).
Result<NodeReport> read_report(std::string_view json);
// Does the same for a report that is parsed already.
NodeReport judged_report(const AgentReport& report);

// Returns whether the agents of all nodes in the last attempt have reported. Nodes lost earlier do
// not count: Slurm gives them up only minutes later.
bool have_all_reported(const std::vector<NodeReport>& reports);

// Returns whether the job can't begin, because agents have refused. Either more nodes than
// `to_spare` take no part. Or the others wait for `host`, and no node has had ranks. to_spare: the
// number of nodes that the first attempt can do without. host: where the nodes meet if the
// pre-flight has left none out; empty: unknown. After the pre-flight they may meet elsewhere, so a
// refusing node counts by number alone.
bool lacks_nodes(const std::vector<NodeReport>& reports, int to_spare, std::string_view host);

enum class Cause {
  success,
  worker,       // a worker failed by itself
  node_lost,    // agents ended because nodes were missing, or without a report
  hang,         // the ranks stood still, and --on-hang ended the job
  watchdog,     // a watchdog of the agent ended the job
  time_limit,   // the signal before the limit came, and the workers were stopped
  stopped,      // scancel, a preemption, or the limit itself
  unfit,        // too few nodes passed the pre-flight
  not_started,  // no agent has reported, or a node could not start its part
  script,       // the user's own script failed
};
std::string_view cause_name(Cause cause);

struct BatchFacts {
  int step_code = 0;         // srun's, as a shell has it
  bool lead_signal = false;  // the signal before the time limit came
  bool stop_signal = false;  // SIGTERM came to the batch step
  int nodes = 0;             // number of agents started
};

struct Verdict {
  Cause cause = Cause::not_started;
  int code = 1;                          // exit code of the job
  std::string words = {};                // one line, for people
  std::vector<std::string> silent = {};  // nodes of `expected` without a report
  // For a launch in a user's own script. noted: the launch has recorded bad nodes itself. unfit:
  // bad nodes found by the launch's pre-flight.
  std::vector<std::string> unfit = {};
  bool noted = false;
};
// Returns whether the job gets another run, which continues from its last checkpoint. earlier: the
// causes of earlier runs. No new run after a worker's own failure, because the worker was restarted
// in place as often as the user allowed. No new run after a stop: users mean it, and Slurm requeues
// what it stops itself.
struct RequeueRule {
  bool asked = false;                   // --requeue or --chain
  int most_losses = 3;                  // most runs that end because of lost or unfit nodes
  std::optional<int> most_limits = {};  // most runs that end at the time limit; nullopt: any
};
bool is_requeued(const RequeueRule& rule, Cause cause, const std::vector<std::string>& earlier);

// Judges a run. expected: the names of the step's nodes.
Verdict judge(const BatchFacts& facts, const std::vector<NodeReport>& reports,
              const std::vector<std::string>& expected);

// Judges a job whose script is the user's own: the script's exit code counts, and the cause is that
// of its last launch. facts.step_code: the script's. launch: nullopt: none happened.
Verdict judge_script(const BatchFacts& facts, const std::optional<Verdict>& launch);

// Judges a job after the script died with node `host` while `launch` ran to the end.
Verdict judge_orphan(Verdict launch, std::string_view host);

// Returns the verdict for a job that ended at its time limit.
Verdict time_limit_verdict();

}  // namespace lockstep::slurm
