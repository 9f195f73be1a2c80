#include "machine/lease_rule.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::machine {
namespace {

constexpr std::int64_t kStopAhead = 60'000;

}  // namespace

// Jobs get up to a minute to save their work before the machine ends, but never more than a quarter
// of a short lease.
std::int64_t stop_ahead_ms(std::int64_t begin, std::int64_t end) {
  return std::clamp<std::int64_t>((end - begin) / 4, 0, kStopAhead);
}

LeaseStep next_step(const LeaseView& view) {
  // The end comes first: it wins over all other reasons.
  using Step = LeaseStep::Kind;
  if (view.now >= view.end) return {Step::end, "its lease is over"};
  const std::int64_t idle = view.now - view.idle_since;
  if (view.idle_limit > 0 && view.jobs == 0 && idle >= view.idle_limit &&
      view.now >= view.hold_until)
    return {Step::end, fmt::format("the machine has been idle for {} s", idle / 1000)};
  if (view.jobs == 0) return {};
  if (!view.notice.empty())
    return {Step::stop_jobs, "the provider takes the machine away: " + view.notice};
  if (view.now >= view.end - stop_ahead_ms(view.begin, view.end))
    return {Step::stop_jobs, "the machine's lease is over"};
  return {};
}

}  // namespace lockstep::machine
