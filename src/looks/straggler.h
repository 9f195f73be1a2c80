// Stragglers and waits for input, by what the looks of the last minute found. Pure.
//
// Collectives make the step times of all ranks equal. But a rank that is late spends less time
// inside collectives than the others, who wait for it there.
#pragma once

#include "looks/doing.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::looks {

// The last looks at a rank, one bit a look, the newest is bit 0.
struct RankShares {
  static constexpr int kWindow = 60;

  int rank = 0;
  int looks = 0;  // at most kWindow
  std::uint64_t waits = 0;
  std::uint64_t input = 0;
  std::uint64_t blind = 0;  // looks without a readable stack, which never find a wait

  void add(bool waiting, bool in_loader, bool unreadable = false);
  double wait_share() const;  // 0 to 1; 0 without looks
  double input_share() const;
  int longest_wait() const;  // the most waiting looks without a break
};

// Returns whether this look finds the rank waiting for other ranks. running: the state of its main
// thread is R. On a CPU, autograd computes in the main thread, and calls the user's hooks there.
bool waits_now(const Activity& activity, bool running);

struct Straggler {
  int rank = 0;
  double share = 0;   // of looks inside collectives
  double others = 0;  // the median of the other ranks
};

// Names the rank that all others wait for, after a minute of looks. Every rank's looks must be of
// the same moments, give or take a second. nullopt: no rank stands out.
std::optional<Straggler> find_straggler(std::span<const RankShares> ranks);

// Keeps the shares of all ranks.
class ShareBook {
 public:
  void add(int rank, const Activity& activity, bool running);
  void forget(int rank) { ranks_.erase(rank); }  // it has ended
  void clear() { ranks_.clear(); }               // another round
  std::vector<RankShares> shares() const;

 private:
  std::map<int, RankShares> ranks_;
};

}  // namespace lockstep::looks
