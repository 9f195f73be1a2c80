// The node's counters in Prometheus's text format 0.0.4, printed by a pure function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::status {

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

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
};

// Returns the body of /metrics.
std::string metrics_text(const Metrics& metrics);

}  // namespace lockstep::status
