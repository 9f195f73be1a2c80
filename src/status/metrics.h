// The node's counters and the rows of its ranks for Prometheus, printed by pure functions: in its
// text format 0.0.4 and in OpenMetrics 1.0.
#pragma once

#include "looks/row.h"
#include "status/goodput.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::status {

enum class MetricsFormat { text, open_metrics };

// Returns the format that an Accept header prefers. Without a wish: text.
MetricsFormat preferred_format(std::string_view accept);
std::string_view content_type_of(MetricsFormat format);

struct Metrics {
  // Labels of every sample.
  std::string run_id;
  std::string role = "default";
  std::string node;

  std::int64_t workers_running = 0;
  std::int64_t workers_expected = 0;
  std::int64_t attempts_total = 0;            // worker groups started, including the first
  std::int64_t restarts_total = 0;            // counted against --max-restarts
  std::int64_t membership_changes_total = 0;  // new rounds that are not counted as restarts
  std::int64_t failures_total = 0;            // workers that failed by themselves
  std::int64_t restarts_remaining = 0;
  std::int64_t world_size = 0;
  std::int64_t group_rank = 0;
  double start_time_s = 0;  // unix time of the agent's start
  Goodput goodput = Goodput(Goodput::TimePoint{});
  // Of lockstep_job_info.
  std::string command = {};
  std::string version = {};
};

// Returns the body of /metrics. rows: of this node's ranks.
std::string metrics_text(const Metrics& metrics, const looks::NodeRows& rows, MetricsFormat format);

}  // namespace lockstep::status
