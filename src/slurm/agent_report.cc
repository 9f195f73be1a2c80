#include "slurm/agent_report.h"

#include "codec/json_fields.h"

#include <algorithm>
#include <array>

namespace lockstep::slurm {
namespace {

constexpr std::size_t kMostOfReport = 8U << 20;  // a report holds the last lines of many ranks
constexpr std::int64_t kMostNodes = 1 << 20;

// In the order of Outcome.
constexpr std::array<std::string_view, 6> kOutcomes = {"succeeded", "failed", "interrupted",
                                                       "refused",   kLeftOut, kUnfit};

Outcome outcome_of(std::string_view word) {
  return static_cast<Outcome>(std::find(kOutcomes.begin(), kOutcomes.end(), word) -
                              kOutcomes.begin());
}

struct Attempt {
  int nodes = 0;
};

void fields(codec::JsonFields& io, Attempt& attempt) {
  io("nodes", attempt.nodes, {0, kMostNodes});
}

}  // namespace

static void fields(codec::JsonFields& io, BlamedFailure& failure) {
  io("rank", failure.rank);
  io("host", failure.host);
  io("exit_code", failure.exit_code);
  io("signal", failure.signal);
  io("time_ms", failure.time_ms);
  io("message", failure.message);
  io("stderr_log", failure.stderr_log);
  io("notes", failure.notes);
  io("stderr_tail", failure.stderr_tail);
  io("others", failure.others);
  io("after_stop", failure.after_stop);
}

static void fields(codec::JsonFields& io, AgentReport& report) {
  io("node", report.node);
  std::string outcome;
  io.needed("outcome", outcome);
  io.require(!outcome.empty(), "outcome", "a word");
  if (io.reads()) report.outcome = outcome_of(outcome);
  io("reason", report.reason);
  io("others", report.others);
  io("root_cause", report.root_cause);
  std::vector<Attempt> attempts;
  io("attempts", attempts);
  if (!attempts.empty()) report.last_nodes = attempts.back().nodes;
}

Result<AgentReport> read_agent_report(std::string_view json) {
  AgentReport report;
  if (!codec::read_fields(codec::parse_json(json, {.bytes = kMostOfReport}), report,
                          codec::kTolerantJson))
    return fail(Errc::corrupt, "not a report of lockstep run");
  return report;
}

}  // namespace lockstep::slurm
