#include "agent/timeout_watch.h"

#include <string_view>

namespace lockstep::agent {
namespace {

constexpr std::string_view kWatchdogLine = "Watchdog caught collective operation timeout";

}  // namespace

void TimeoutWatch::read(const store::Server& store) {
  if (!rank_) rank_ = signal_.look(store.engine());
}

void TimeoutWatch::read(int rank, const logs::Capture& output) {
  if (!rank_ && output.stderr_has(kWatchdogLine)) rank_ = rank;
}

void TimeoutWatch::hear(std::optional<int> rank) {
  if (!rank_) rank_ = rank;
}

}  // namespace lockstep::agent
