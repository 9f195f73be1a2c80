// Finds the straggler among the ranks of all nodes, by the wait shares that the nodes tell. Pure.
//
// Nodes look at different moments, so the looks of two nodes cannot be compared one by one, and
// equal shares differ by chance. Where steps take about a look's period, a node may see the same
// part of a step for minutes. So a rank that its own node has not found late must stand out by
// much, or for minutes.
#pragma once

#include "io/loop.h"
#include "looks/straggler_watch.h"
#include "looks/wait_shares.h"

#include <cstddef>
#include <deque>
#include <map>
#include <optional>

namespace lockstep::looks {

class WorldStraggler {
 public:
  using Shares = std::map<int, WaitShare>;  // by rank
  // A rank beside the others.
  struct Gap {
    int rank = 0;
    WaitShare own = {};
    WaitShare others = {};  // medians

    double points() const { return others.waits - own.waits; }
  };

  // Expects the shares of all ranks, once a look. nullopt: some are not known at this moment, so
  // nothing is decided.
  StragglerWatch::News feed(const std::optional<Shares>& shares, const Verdict& verdict,
                            io::TimePoint now);
  const std::optional<Straggler>& current() const { return watch_.current(); }

 private:
  static constexpr std::size_t kMostMinutes = 10;

  bool keep_minute(const Shares& shares, io::TimePoint now);
  bool is_late_twice(const Gap& gap) const;
  std::optional<Straggler> find(const Shares& shares) const;
  std::optional<Straggler> find_over_minutes(const Shares& shares) const;

  StragglerWatch watch_;
  std::deque<Shares> minutes_;  // the newest last, of looks that have nothing in common
  io::TimePoint kept_ = {};
};

}  // namespace lockstep::looks
