// Conclusions from the flight recorders of several ranks: in which collective a process group is
// stuck, and which rank is not there. Pure. A stuck group has a collective that some rank has
// entered and nobody has seen end; a group without one gives no facts. The dumps of a job that runs
// differ by chance, so the caller must know that the job stands still.
#pragma once

#include "recorder/dump.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace lockstep::recorder {

// Ranks whose recorders agree on one place of a group's sequence.
struct Variant {
  std::string what = {};  // "gloo:all_reduce", with sizes and types if these differ
  std::vector<int> ranks = {};
};

struct GroupStuck {
  enum class Kind {
    never_entered,  // the ranks in `behind` have not entered the collective
    mismatch,       // all have entered, but not the same
    all_entered,    // all are in the same collective: the network or the library
  };
  Kind kind = Kind::all_entered;
  std::string group = {};         // "0"
  std::string words = {};         // "default_pg", "group 3"
  std::int64_t sequence = 0;      // of the collective that is stuck
  std::string name = {};          // "gloo:all_reduce"
  std::int64_t bytes = -1;        // of its inputs. -1: unknown
  std::vector<int> entered = {};  // global ranks, ascending
  std::vector<int> behind = {};
  int silent = 0;  // members of the group without a dump: nothing is known of them
  std::vector<Variant> variants = {};  // of a mismatch, the fewest ranks first
  std::int64_t created_ns = 0;         // when the first rank entered it: the oldest group is first
};

// dumps: by global rank. world: ranks of the default group; 0: as many as there are dumps. Groups
// that are not stuck are left out.
std::vector<GroupStuck> merge_dumps(const std::map<int, Dump>& dumps, int world = 0);

// "rank 3 never entered #1742 gloo:all_reduce of default_pg, 268 MB"; printable, at most 600 bytes.
std::string stuck_sentence(const GroupStuck& stuck);

// "all_reduce #1742 of default_pg, 268 MB": the collective of a rank in `entered`, for a table. Of
// a mismatch, each rank has its own. Printable and bounded.
std::string collective_words(const GroupStuck& stuck, int rank);

}  // namespace lockstep::recorder
