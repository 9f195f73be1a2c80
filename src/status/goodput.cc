// Adds up the phases of a job and puts them into words.
#include "status/goodput.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace lockstep::status {
namespace {

bool is_training(Phase phase) {
  return phase == Phase::training || phase == Phase::redone;
}

bool is_seen_by_looks(Phase phase) {
  return phase == Phase::start || is_training(phase) || phase == Phase::waiting ||
         phase == Phase::input;
}

std::string phase_time_words(Goodput::Duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  if (seconds < 60) return fmt::format("{:.1f} s", std::chrono::duration<double>(time).count());
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
}

}  // namespace

void Goodput::spend(Phase phase, double share, Duration time) {
  auto& spent = spent_[static_cast<std::size_t>(phase)];
  spent += std::chrono::duration_cast<Duration>(share * time);
}

void Goodput::enter(Phase phase, TimePoint now) {
  if (now > last_) {
    spend(phase_, 1, now - last_);
    last_ = now;
  }
  phase_ = phase;
}

void Goodput::look(Phase seen, double input_share, TimePoint now) {
  // The agent itself knows of restarts and the like. A look must not end such a phase.
  if (!is_seen_by_looks(phase_) || !is_seen_by_looks(seen)) return;
  const double input = is_training(seen) ? std::clamp(input_share, 0.0, 1.0) : 0;
  if (now > last_) {
    const Duration time = now - last_;
    spend(seen, 1 - input, time);
    spend(Phase::input, input, time);
    last_ = now;
  }
  phase_ = seen;
}

Goodput Goodput::at(TimePoint now) const {
  Goodput sums = *this;
  // The time since the last look has no phase yet: the next look decides it.
  if (!is_seen_by_looks(phase_)) sums.enter(phase_, now);
  return sums;
}

Goodput::Duration Goodput::total() const {
  return std::accumulate(spent_.begin(), spent_.end(), Duration{});
}

// What has been counted stays: no sum falls.
bool Goodput::knows(Phase phase) const {
  return phase != Phase::redone || knows_steps_ || of(phase) > Duration{};
}

double Goodput::share() const {
  const Duration all = total();
  if (all <= Duration{}) return 0;
  const auto training = std::chrono::duration<double>(of(Phase::training));
  return std::round(training / std::chrono::duration<double>(all) * 1e4) / 1e4;
}

std::string goodput_words(const Goodput& goodput) {
  // A percentage of a short run says more about its start than about the job.
  constexpr std::chrono::seconds kLeast{60};
  if (goodput.of(Phase::training) <= Goodput::Duration{} || goodput.total() < kLeast) return {};
  std::vector<std::pair<Goodput::Duration, Phase>> parts;
  for (std::size_t i = 0; i < kPhaseWords.size(); ++i) {
    const auto time = goodput.of(static_cast<Phase>(i));
    if (time >= std::chrono::seconds(1) && time >= goodput.total() / 1000)
      parts.emplace_back(time, static_cast<Phase>(i));
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string list;
  for (const auto& [time, phase] : parts)
    list += fmt::format("{}{} {}{}", list.empty() ? "" : ", ",
                        kPhaseWords[static_cast<std::size_t>(phase)],
                        goodput.guesses(phase) ? "~" : "", phase_time_words(time));
  return fmt::format("goodput {:.0f} %{}", 100 * goodput.share(),
                     list.empty() ? "" : " (" + list + ")");
}

}  // namespace lockstep::status
