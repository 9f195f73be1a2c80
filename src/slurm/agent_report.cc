#include "slurm/agent_report.h"

#include "codec/json_fields.h"

namespace lockstep::slurm {
namespace {

constexpr std::size_t kMostBytes = 8U << 20;  // a report holds the last lines of many ranks
constexpr std::int64_t kMostNodes = 1 << 20;

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
  io("after_stop", failure.after_stop);
}

static void fields(codec::JsonFields& io, AgentReport& report) {
  io("node", report.node);
  io.needed("outcome", report.outcome);
  io.require(!report.outcome.empty(), "outcome", "a word");
  io("reason", report.reason);
  io("root_cause", report.root_cause);
  std::vector<Attempt> attempts;
  io("attempts", attempts);
  if (!attempts.empty()) report.last_nodes = attempts.back().nodes;
}

Result<AgentReport> read_agent_report(std::string_view json) {
  AgentReport report;
  if (!codec::read_fields(codec::parse_json(json, {.bytes = kMostBytes}), report,
                          codec::kTolerantJson))
    return fail(Errc::corrupt, "not a report of lockstep run");
  return report;
}

}  // namespace lockstep::slurm
