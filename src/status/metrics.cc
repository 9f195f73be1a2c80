// Prints metrics for Prometheus.
#include "status/metrics.h"

#include "base/text.h"

#include <fmt/core.h>

#include <array>

namespace lockstep::status {
namespace {

// The only three escapes of the text format.
std::string escaped(std::string text) {
  replace_all(text, "\\", "\\\\");
  replace_all(text, "\"", "\\\"");
  replace_all(text, "\n", "\\n");
  return text;
}

struct Row {
  const char* name;
  const char* type;
  const char* help;
  std::int64_t value;
};

}  // namespace

std::string metrics_text(const Metrics& m) {
  const std::array rows = {
      Row{"workers_running", "gauge", "Worker processes alive on this node.", m.workers_running},
      Row{"workers_expected", "gauge", "Worker processes this node should run.",
          m.workers_expected},
      Row{"workers_attempts_total", "counter", "Worker groups started.", m.attempts_total},
      Row{"workers_restarts_total", "counter", "Restarts counted against --max-restarts.",
          m.restarts_total},
      Row{"workers_restarts_remaining", "gauge", "Restarts left.", m.restarts_remaining},
      Row{"workers_failures_total", "counter", "Workers that failed.", m.failures_total},
      Row{"workers_membership_changes_total", "counter", "New rounds because a node came or went.",
          m.membership_changes_total},
      Row{"world_size", "gauge", "Ranks in the current round.", m.world_size},
      Row{"group_rank", "gauge", "This node's place in the current round.", m.group_rank},
  };
  const std::string labels = fmt::format(R"({{run_id="{}",role="{}",node="{}"}})",
                                         escaped(m.run_id), escaped(m.role), escaped(m.node));
  std::string text;
  for (const Row& row : rows)
    text += fmt::format("# HELP lockstep_{0} {1}\n# TYPE lockstep_{0} {2}\nlockstep_{0}{3} {4}\n",
                        row.name, row.help, row.type, labels, row.value);
  text += fmt::format(
      "# HELP lockstep_start_time_seconds Unix time at which the agent started.\n"
      "# TYPE lockstep_start_time_seconds gauge\nlockstep_start_time_seconds{} {:.3f}\n",
      labels, m.start_time_s);
  return text;
}

}  // namespace lockstep::status
