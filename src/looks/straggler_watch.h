// Decides when a straggler is told: once, and once more when it has recovered. Pure.
#pragma once

#include "looks/straggler.h"
#include "looks/verdict.h"

#include <optional>
#include <span>
#include <string>

namespace lockstep::looks {

// Returns "rank 3 (node n1, GPU 3)". node: "" if it is not known.
std::string straggler_name(int rank, const std::string& node, std::optional<int> gpu);
// "rank 3 (node n1, GPU 3) makes the others wait: it waits 5 % of the time, the median 48 %".
std::string straggler_words(const Straggler& straggler, const std::string& name);

// In a stand of this length, no rank is slow: one works alone, or the job hangs. Its looks say
// nothing about the steps.
inline constexpr Millis kLongStand{30'000};
bool is_long_stand(const Verdict& verdict);

class StragglerWatch {
 public:
  struct News {
    std::optional<Straggler> begins = {};
    std::optional<int> ends = {};  // the rank that no longer makes the others wait
    bool forget = false;           // the shares of the looks so far say nothing
  };

  // Expects the shares of all ranks, once a look.
  News feed(std::span<const RankShares> shares, const Verdict& verdict);
  // Takes the straggler that another comparison of this look has found. nullopt: none.
  News note(const std::optional<Straggler>& found);
  // The straggler of the last message. The shares are of the last look with a straggler.
  const std::optional<Straggler>& current() const { return current_; }

 private:
  // So many looks without it withdraw a straggler: a share at the edge comes and goes.
  static constexpr int kWithdrawn = 10;

  std::optional<Straggler> current_;
  int missed_ = 0;
};

}  // namespace lockstep::looks
