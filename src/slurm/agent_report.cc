#include "slurm/agent_report.h"

#include "codec/json_fields.h"

#include <algorithm>
#include <array>

namespace lockstep::slurm {
namespace {

constexpr std::size_t kMostOfReport = 8U << 20;  // a report holds the last lines of many ranks
constexpr std::int64_t kMostNodes = 1 << 20;

// In the order of Outcome.
constexpr std::array<std::string_view, 8> kOutcomes = {"succeeded",   "failed",       "interrupted",
                                                       "refused",     kLeftOut,       kUnfit,
                                                       "not_started", "no_rendezvous"};
// In the order of AttemptEnd.
constexpr std::array<std::string_view, 2> kAttemptEnds = {"hang", "watchdog"};

// Returns the value of a word; one more than the last word's for any other word.
template <class Enum, std::size_t N>
Enum value_of(const std::array<std::string_view, N>& words, std::string_view word) {
  return static_cast<Enum>(std::find(words.begin(), words.end(), word) - words.begin());
}

struct Attempt {
  int nodes = 0;
  std::string ended_by = {};
  std::string why = {};
};

void fields(codec::JsonFields& io, Attempt& attempt) {
  io("nodes", attempt.nodes, {0, kMostNodes});
  io("ended_by", attempt.ended_by);
  io("why", attempt.why);
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
  if (io.reads()) report.outcome = value_of<Outcome>(kOutcomes, outcome);
  io("reason", report.reason);
  io("others", report.others);
  io("root_cause", report.root_cause);
  std::vector<Attempt> attempts;
  io("attempts", attempts);
  if (attempts.empty()) return;
  report.last_nodes = attempts.back().nodes;
  report.last_end = value_of<AttemptEnd>(kAttemptEnds, attempts.back().ended_by);
  report.last_why = attempts.back().why;
}

Result<AgentReport> read_agent_report(std::string_view json) {
  AgentReport report;
  if (!codec::read_fields(codec::parse_json(json, {.bytes = kMostOfReport}), report,
                          codec::kTolerantJson))
    return fail(Errc::corrupt, "not a report of lockstep run");
  return report;
}

}  // namespace lockstep::slurm
