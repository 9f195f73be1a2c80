#include "looks/straggler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

namespace lockstep::looks {
namespace {

constexpr std::uint64_t kMask = (std::uint64_t{1} << RankShares::kWindow) - 1;
constexpr std::uint64_t kNewest = (std::uint64_t{1} << (RankShares::kWindow / 3)) - 1;
// The lowest share stands out by this much. Even ranks differ by a few points.
constexpr double kLeastGap = 0.10;
// In standard deviations. With 8 ranks looked at all day, smaller gaps happen by chance.
constexpr double kLeastSigma = 3;

double share_of(std::uint64_t bits, int looks) {
  return looks == 0 ? 0 : static_cast<double>(std::popcount(bits)) / looks;
}

// A wait for longer than so many looks, for a checkpoint of one rank or at a debugger.
constexpr int kLongWait = 5;

// At how many looks the others waited while this rank did not, and the reverse. "The others" are at
// least half of the other ranks.
struct Pairs {
  int late = 0;
  int early = 0;
  int longest = 0;  // late looks without a break
};

Pairs compare(const RankShares& rank, std::span<const int> waiting_at, std::size_t others,
              std::uint64_t window) {
  Pairs pairs;
  int run = 0;
  for (int look = 0; look < RankShares::kWindow; ++look) {
    const std::uint64_t bit = std::uint64_t{1} << look;
    if ((window & bit) == 0) continue;
    const bool waits = (rank.waits & bit) != 0;
    const auto count =
        static_cast<std::size_t>(waiting_at[static_cast<std::size_t>(look)] - (waits ? 1 : 0));
    const bool others_wait = 2 * count >= others;
    const bool late = others_wait && !waits;
    run = late ? run + 1 : 0;
    pairs.longest = std::max(pairs.longest, run);
    if (late) ++pairs.late;
    if (!others_wait && waits) ++pairs.early;
  }
  return pairs;
}

// A straggler is late again and again. One long wait is something else.
bool stands_out(Pairs pairs, int looks) {
  if (pairs.longest > kLongWait) pairs.late -= pairs.longest;
  const int gap = pairs.late - pairs.early;
  return gap >= kLeastGap * looks && gap >= kLeastSigma * std::sqrt(pairs.late + pairs.early);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void RankShares::add(bool waiting, bool in_loader, bool unreadable) {
  waits = (waits << 1 | (waiting ? 1U : 0U)) & kMask;
  input = (input << 1 | (in_loader ? 1U : 0U)) & kMask;
  blind = (blind << 1 | (unreadable ? 1U : 0U)) & kMask;
  looks = std::min(looks + 1, kWindow);
}

double RankShares::wait_share() const {
  return share_of(waits, looks);
}
double RankShares::input_share() const {
  return share_of(input, looks);
}

int RankShares::longest_wait() const {
  int longest = 0;
  // Each step shortens every run of waiting looks by one.
  for (std::uint64_t runs = waits; runs != 0; runs &= runs << 1)
    ++longest;
  return longest;
}

bool waits_now(const Activity& activity, bool running) {
  return activity.doing == Doing::collective ||
         (activity.doing == Doing::backward && !running && !activity.own_inside);
}

std::optional<Straggler> find_straggler(std::span<const RankShares> ranks) {
  if (ranks.size() < 2) return std::nullopt;
  std::vector<int> waiting_at(RankShares::kWindow);
  for (const RankShares& rank : ranks) {
    if (rank.looks < RankShares::kWindow) return std::nullopt;
    for (std::size_t look = 0; look < waiting_at.size(); ++look)
      waiting_at[look] += static_cast<int>(rank.waits >> look & 1);
  }
  const auto lowest =
      std::min_element(ranks.begin(), ranks.end(), [](const RankShares& a, const RankShares& b) {
        return std::popcount(a.waits) < std::popcount(b.waits);
      });
  std::vector<double> others;
  for (const RankShares& rank : ranks)
    if (&rank != &*lowest) others.push_back(rank.wait_share());
  const Straggler found{lowest->rank, lowest->wait_share(), median(std::move(others))};
  if (found.others - found.share < kLeastGap) return std::nullopt;
  if (!stands_out(compare(*lowest, waiting_at, ranks.size() - 1, kMask), RankShares::kWindow))
    return std::nullopt;
  // Withdraw a straggler that has recovered.
  const Pairs newest = compare(*lowest, waiting_at, ranks.size() - 1, kNewest);
  if (newest.late - newest.early < kLeastGap * RankShares::kWindow / 3) return std::nullopt;
  return found;
}

void ShareBook::add(int rank, const Activity& activity, bool running) {
  RankShares& shares = ranks_[rank];
  shares.rank = rank;
  shares.add(waits_now(activity, running), activity.doing == Doing::data_loader,
             activity.doing == Doing::unknown);
}

std::vector<RankShares> ShareBook::shares() const {
  std::vector<RankShares> all;
  for (const auto& [rank, shares] : ranks_)
    all.push_back(shares);
  return all;
}

}  // namespace lockstep::looks
