// The members of an agent's report (--report of `lockstep run`, docs/report.md) that the batch step
// and `lockstep why` need. Texts are raw: they come from workers, so make them printable before a
// person sees them. Pure.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// Outcome reported if the pre-flight ends the job.
inline constexpr std::string_view kUnfit = "unfit";
// Outcome of an excluded node.
inline constexpr std::string_view kLeftOut = "left out";

// The outcomes that a verdict tells apart.
enum class Outcome {
  succeeded,
  failed,
  interrupted,    // a signal stopped the agent
  refused,        // the agent did not begin
  left_out,       // kLeftOut
  unfit,          // kUnfit
  not_started,    // a worker could not be started
  no_rendezvous,  // the nodes did not meet, or not again
  other,          // any other word, such as "spare"
};

// Why the workers of an attempt stopped. A verdict needs these reasons only.
enum class AttemptEnd {
  hang,      // --on-hang
  watchdog,  // a timer of a worker, or a worker that the kernel does not let go
  other,
};

// The failure that the agent blames.
struct BlamedFailure {
  std::optional<std::int64_t> rank = {};  // nullopt: the node could not start any rank
  std::string host = {};
  std::int64_t exit_code = 0;  // as Python counts: negative for signals; 0: none
  std::string signal = {};     // "SIGKILL"; empty: none
  std::int64_t time_ms = 0;    // Unix time
  std::string message = {};
  std::string stderr_log = {};  // path on `host`; empty: none
  std::vector<std::string> notes = {};
  std::vector<std::string> stderr_tail = {};
  std::vector<std::string> others = {};  // where the other ranks of the node were
  bool after_stop = false;               // the agent was already stopping the worker
};

struct AgentReport {
  std::string node = {};
  Outcome outcome = Outcome::other;
  std::string reason = {};               // empty: none
  std::vector<std::string> others = {};  // where the node's ranks were when they were stopped
  int last_nodes = 0;                    // nodes in the last attempt; 0: no attempt (a spare)
  AttemptEnd last_end = AttemptEnd::other;
  std::string last_why = {};  // why that attempt ended; empty: success
  std::optional<BlamedFailure> root_cause = {};
};

// Members that are missing or of another kind count as empty: reports of other versions are read,
// too. Errors: corrupt (no report of `lockstep run`).
Result<AgentReport> read_agent_report(std::string_view json);

}  // namespace lockstep::slurm
