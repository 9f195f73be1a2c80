#include "looks/wait_shares.h"

#include "base/text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace lockstep::looks {
namespace {

constexpr int kSteps = 20;  // of kShareStep
// So many looks of a minute may miss a stack, which happens while a process maps memory.
constexpr int kMostBlind = 3;
constexpr std::string_view kNotYet = "--";
constexpr std::string_view kNever = "..";

std::string rank_text(const RankShares& rank, bool late) {
  if (rank.looks < RankShares::kWindow) return std::string(kNotYet);
  if (std::popcount(rank.blind) > kMostBlind) return std::string(kNever);
  const auto waits = std::lround(rank.wait_share() * kSteps);
  const int longest = (rank.longest_wait() * kSteps + rank.looks - 1) / rank.looks;
  return {static_cast<char>((late ? 'A' : 'a') + waits), static_cast<char>('a' + longest)};
}

// nullopt: another character.
std::optional<double> share_in(char digit, char zero) {
  const int steps = digit - zero;
  if (steps < 0 || steps > kSteps) return std::nullopt;
  return static_cast<double>(steps) / kSteps;
}

std::optional<WaitShare> share_in(std::string_view pair) {
  const bool late = pair[0] >= 'A' && pair[0] <= 'Z';
  const auto waits = share_in(pair[0], late ? 'A' : 'a');
  const auto longest = share_in(pair[1], 'a');
  if (!waits || !longest) return std::nullopt;
  return WaitShare{*waits, *longest, late};
}

}  // namespace

std::string waits_text(std::span<const RankShares> ranks, std::optional<int> late) {
  if (ranks.empty()) return {};
  std::string text = std::to_string(ranks.front().rank) + ":";
  int next = ranks.front().rank;
  for (const RankShares& rank : ranks) {
    for (; next < rank.rank; ++next)
      text += kNever;  // it has ended
    text += rank_text(rank, rank.rank == late);
    ++next;
  }
  return text;
}

std::optional<NodeWaits> read_waits(std::string_view text, int below) {
  const std::size_t colon = text.find(':');
  if (text.size() > kMostWaitNews || colon == std::string_view::npos) return std::nullopt;
  const auto first = parse_int(std::string(text.substr(0, colon)));
  const std::string_view pairs = text.substr(colon + 1);
  if (!first || *first < 0 || *first > below || pairs.size() % 2 != 0) return std::nullopt;
  NodeWaits waits;
  for (std::size_t at = 0; at < pairs.size(); at += 2) {
    const std::int64_t rank = *first + static_cast<std::int64_t>(at / 2);
    const std::string_view pair = pairs.substr(at, 2);
    if (rank >= below) break;
    if (pair == kNotYet) waits.incomplete = true;
    const auto share = share_in(pair);
    if (share)
      waits.ranks.emplace(static_cast<int>(rank), *share);
    else if (pair != kNotYet && pair != kNever)
      return std::nullopt;
  }
  return waits;
}

}  // namespace lockstep::looks
