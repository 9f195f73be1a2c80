// All that an agent makes of its looks: activities, motion, shares, the fold, rows. Pure.
#pragma once

#include "looks/fold.h"
#include "looks/motion.h"
#include "looks/rank_look.h"
#include "looks/row.h"
#include "looks/straggler.h"
#include "looks/use_book.h"
#include "looks/verdict.h"

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::looks {

class LookBook {
 public:
  LookBook(std::string node, io::Duration period);

  // Takes a look at all ranks of this node.
  Fold feed(std::span<const RankLook> looks, io::TimePoint now);
  // Makes the rows of a look that was fed last. Output and steps are left to the caller.
  std::vector<RankRow> rows(std::span<const RankLook> looks, const Verdict& verdict) const;
  std::vector<RankShares> shares() const { return shares_.shares(); }
  // Another round: the ranks have new numbers.
  void clear_shares() { shares_.clear(); }

 private:
  std::string node_;
  MotionTracker tracker_;
  ShareBook shares_;
  UseBook uses_;
  std::map<int, std::pair<Activity, Motion>> known_;  // by the last look
};

}  // namespace lockstep::looks
