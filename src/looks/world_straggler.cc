#include "looks/world_straggler.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace lockstep::looks {
namespace {

constexpr std::chrono::seconds kMinute{RankShares::kWindow};
// As of the ranks of one node.
constexpr double kLeastGap = 0.10;
// Two rounded shares are up to half a step off each.
constexpr double kRounding = kShareStep;
// A straggler that was told has recovered below this gap.
constexpr double kLeastKept = 0.05;
// In standard deviations. Thousands of ranks are compared all day.
constexpr double kLeastSigma = 5;
// So many waiting looks in a row happen by chance.
constexpr double kFairRun = 6;

// Shares are multiples of 1/20, which a double does not hold.
bool is_at_least(double points, double least) {
  return points > least - 1e-9;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

WorldStraggler::Gap gap_of(int rank, const WorldStraggler::Shares& shares) {
  std::vector<double> waits;
  std::vector<double> longest;
  for (const auto& [other, share] : shares)
    if (other != rank) {
      waits.push_back(share.waits);
      longest.push_back(share.longest);
    }
  return {rank, shares.at(rank), {median(std::move(waits)), median(std::move(longest))}};
}

// Returns the rank that waits least. A rank that is late by its own node's looks goes before a rank
// that is lower by chance.
int lowest_of(const WorldStraggler::Shares& shares) {
  const auto lower = [](const auto& a, const auto& b) { return a.second.waits < b.second.waits; };
  const auto lowest = std::min_element(shares.begin(), shares.end(), lower);
  auto late = shares.end();
  for (auto at = shares.begin(); at != shares.end(); ++at)
    if (at->second.late && (late == shares.end() || lower(*at, *late))) late = at;
  const bool is_near =
      late != shares.end() && late->second.waits < lowest->second.waits + kLeastGap + kRounding;
  return (is_near ? late : lowest)->first;
}

// One long wait, for a checkpoint of this rank for example, is left out of the gap. It also shows
// how many looks belong together: so many fewer there are to judge by.
bool stands_out(const WorldStraggler::Gap& gap, std::size_t minutes) {
  const double longest = std::max(gap.others.longest, gap.own.longest);
  const double together = std::max(1.0, longest * RankShares::kWindow / kFairRun);
  const double points = gap.points() - (is_at_least(1, together) ? 0 : longest);
  const double looks = static_cast<double>(minutes) * RankShares::kWindow / together;
  const auto spread = [](double share) { return share * (1 - share); };
  const double sigma = std::sqrt((spread(gap.own.waits) + spread(gap.others.waits)) / looks);
  return is_at_least(points, kLeastGap + kRounding) && points >= kLeastSigma * sigma;
}

Straggler straggler_of(const WorldStraggler::Gap& gap) {
  return {gap.rank, gap.own.waits, gap.others.waits};
}

}  // namespace

StragglerWatch::News WorldStraggler::feed(const std::optional<Shares>& shares,
                                          const Verdict& verdict, io::TimePoint now) {
  if (is_long_stand(verdict)) {
    minutes_.clear();
    return {.forget = true};
  }
  if (!shares) return {};
  const bool is_new_minute = keep_minute(*shares, now);
  if (shares->size() < 2) return watch_.note({});
  auto found = find(*shares);
  if (!found && is_new_minute) found = find_over_minutes(*shares);
  return watch_.note(found);
}

// Returns whether these are the shares of a new minute.
bool WorldStraggler::keep_minute(const Shares& shares, io::TimePoint now) {
  const auto same_ranks = [&shares](const Shares& minute) {
    return std::equal(minute.begin(), minute.end(), shares.begin(), shares.end(),
                      [](const auto& a, const auto& b) { return a.first == b.first; });
  };
  if (!minutes_.empty() && !same_ranks(minutes_.back())) minutes_.clear();
  if (!minutes_.empty() && now - kept_ < kMinute) return false;
  minutes_.push_back(shares);
  kept_ = now;
  if (minutes_.size() > kMostMinutes) minutes_.pop_front();
  return true;
}

std::optional<Straggler> WorldStraggler::find(const Shares& shares) const {
  const Gap lowest = gap_of(lowest_of(shares), shares);
  if (is_late_twice(lowest)) return straggler_of(lowest);
  if (const auto& told = watch_.current(); told && shares.contains(told->rank)) {
    const Gap kept = gap_of(told->rank, shares);
    const bool others_are_lower =
        is_at_least(kept.own.waits - lowest.own.waits, kLeastGap + kRounding);
    if (is_at_least(kept.points(), kLeastKept) && !others_are_lower) return straggler_of(kept);
  }
  if (!stands_out(lowest, 1)) return std::nullopt;
  return straggler_of(lowest);
}

// The node of a late rank has compared looks of the same moments. By chance one rank is the latest
// in one minute, and for all of one or two long steps.
bool WorldStraggler::is_late_twice(const Gap& gap) const {
  if (!gap.own.late || !is_at_least(gap.points(), kLeastGap)) return false;
  const bool has_several_waits = is_at_least(gap.others.waits, 2 * gap.others.longest);
  if (!has_several_waits || minutes_.size() < 2) return false;
  const Shares& before = minutes_[minutes_.size() - 2];
  return before.at(gap.rank).late;
}

// Small differences take minutes to tell from chance.
std::optional<Straggler> WorldStraggler::find_over_minutes(const Shares& shares) const {
  Shares sum;
  for (std::size_t count = 1; count <= minutes_.size(); ++count) {
    Shares mean;
    for (const auto& [rank, share] : minutes_[minutes_.size() - count]) {
      WaitShare& all = sum[rank];
      all.waits += share.waits;
      all.longest += share.longest;
      const auto many = static_cast<double>(count);
      mean[rank] = {.waits = all.waits / many, .longest = all.longest / many};
    }
    const Gap gap = gap_of(lowest_of(mean), mean);
    const bool is_still = is_at_least(gap_of(gap.rank, shares).points(), kLeastGap);
    if (is_still && stands_out(gap, count)) return straggler_of(gap);
  }
  return std::nullopt;
}

}  // namespace lockstep::looks
