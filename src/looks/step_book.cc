#include "looks/step_book.h"

#include <chrono>

namespace lockstep::looks {
namespace {

constexpr std::chrono::seconds kRateSpan{60};
// A step line a second fills the span. Faster loops are seen once a look.
constexpr std::size_t kMostSamples = 64;

}  // namespace

void StepBook::feed(int rank, std::string_view line, io::TimePoint now) {
  const auto seen = logs::step_of(line, pattern_);
  if (!seen || seen->is_epoch || !(seen->step >= 0 && seen->step < 1e15)) return;
  const auto step = static_cast<std::int64_t>(seen->step);
  Rank& known = ranks_[rank];
  known.guessed = seen->guessed;
  std::deque<Sample>& samples = known.samples;
  // A smaller step begins a new count: another epoch, or a loop of validation.
  if (!samples.empty() && step < samples.back().step) samples.clear();
  if (!samples.empty() && step == samples.back().step) return;
  samples.push_back({now, step});
  // Two samples stay, however old: a step may take minutes.
  while (samples.size() > kMostSamples ||
         (samples.size() > 2 && now - samples.front().at > kRateSpan))
    samples.pop_front();
}

std::optional<StepBook::Steps> StepBook::of(int rank) const {
  const auto known = ranks_.find(rank);
  if (known == ranks_.end()) return std::nullopt;
  const std::deque<Sample>& samples = known->second.samples;
  Steps steps{.step = samples.back().step, .guessed = known->second.guessed};
  const std::chrono::duration<double> span = samples.back().at - samples.front().at;
  if (span.count() > 0)
    steps.per_s = static_cast<double>(samples.back().step - samples.front().step) / span.count();
  return steps;
}

}  // namespace lockstep::looks
