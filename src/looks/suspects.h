// Who is to blame when a job stands still. Pure.
#pragma once

#include "looks/evidence.h"
#include "looks/fold.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::looks {

struct Suspect {
  std::vector<int> ranks;  // sorted
  std::string why;         // "stopped by a signal"

  friend bool operator==(const Suspect&, const Suspect&) = default;
};

// Lists each rank once, with the first reason.
class SuspectList {
 public:
  void add(std::vector<int> ranks, std::string why);
  bool empty() const { return list_.empty(); }
  std::vector<Suspect> take() { return std::move(list_); }

 private:
  std::vector<Suspect> list_;
  std::set<int> known_;
};

// Returns whether the ranks of a group wait for other ranks: by their stacks, or by their
// recorders.
bool waits(const Group& group, const Evidence& evidence);

// Returns the ranks that the others wait for, as far as that is known; each rank once, with the
// strongest reason. Empty: all ranks are alike, so the network or a library is to blame.
std::vector<Suspect> suspects_of(const Fold& fold, const Evidence& evidence);

}  // namespace lockstep::looks
