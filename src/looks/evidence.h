// What other witnesses say: the store, and the flight recorders of the ranks. Values only; other
// rooms fill them.
#pragma once

#include "looks/rank_look.h"

#include <map>
#include <string>
#include <vector>

namespace lockstep::looks {

struct Evidence {
  // Ranks whose key others wait for in the store, and the store's sentence about them: "ranks 0, 1
  // wait 9 s for the key of rank 2, which has never connected".
  std::vector<int> never_came = {};
  std::string never_came_text = {};
  // Ranks missing from the current collective, sorted.
  std::vector<int> never_entered = {};
  // Ranks that have entered another collective than most of the others.
  std::vector<int> mismatched = {};
  // All ranks have entered the same collective, so no rank is to blame.
  bool all_entered = false;
  // For so long a rank has been inside a collective while its recorder stood still. The CPU time of
  // such a rank proves nothing: NCCL spins.
  std::map<int, Millis> inside = {};
  // What is known of the collective of a rank: "all_reduce #1742 of default_pg, 268 MB", or "never
  // entered #1742". Printable.
  std::map<int, std::string> collective = {};
  // "rank 3 never entered #1742 nccl:all_reduce of default_pg, 268 MB". Printable.
  std::vector<std::string> sentences = {};
};

}  // namespace lockstep::looks
