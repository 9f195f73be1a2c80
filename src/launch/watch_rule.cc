// Reads PyTorch's variables about watchdogs and error files. PyTorch's agent has no options for
// them.
#include "base/text.h"
#include "launch/rules.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::launch {
namespace {

// Returns a variable's value, and notes it as an origin. An empty variable counts as unset.
std::optional<std::string> variable(std::string_view name, const Facts& facts,
                                    LaunchConfig& config) {
  auto value = facts.env(std::string(name));
  if (!value || strip(*value).empty()) return std::nullopt;
  config.origins[std::string(name)] = {Origin::Kind::variable, std::string(name)};
  return value;
}

void apply_health_port(const Facts& facts, LaunchConfig& config) {
  const auto given = variable(kHealthPortVariable, facts, config);
  if (!given) return;
  const auto port = parse_int(*given);
  if (port && *port >= 0 && *port <= 65535) {
    config.watch.health_port = static_cast<std::uint16_t>(*port);
    return;
  }
  // Only a warning: the job does not need its health port.
  config.warnings.push_back(fmt::format("{}={} must be a port; no health check is served",
                                        kHealthPortVariable, printable(*given)));
}

void apply_stuck_limit(const Facts& facts, LaunchConfig& config) {
  const auto given = variable(kStuckLimitVariable, facts, config);
  if (!given) return;
  const auto seconds = parse_float(*given);
  if (!seconds)
    config.warnings.push_back(
        fmt::format("{}={} must be a number of seconds; stuck workers are not watched",
                    kStuckLimitVariable, printable(*given)));
  if (!seconds || *seconds <= 0) return;  // 0 switches the watch off
  config.watch.stuck_limit =
      std::chrono::duration<double>(std::min(*seconds, static_cast<double>(kYearInSeconds)));
}

}  // namespace

void apply_watch(const Facts& facts, LaunchConfig& config) {
  apply_health_port(facts, config);
  config.watch.file_timer = variable(kFileTimerVariable, facts, config) == "1";
  if (config.watch.file_timer)
    config.watch.timer_file = variable(kTimerFileVariable, facts, config);
  apply_stuck_limit(facts, config);
  config.error_file_above = variable(kErrorFileVariable, facts, config);
}

}  // namespace lockstep::launch
