// Ranks with equal stacks, as one group. An agent folds the looks at its own ranks; the leader
// merges the folds of all agents. Pure.
#pragma once

#include "base/error.h"
#include "looks/doing.h"
#include "looks/motion.h"
#include "looks/place.h"
#include "looks/rank_look.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::looks {

// All texts are printable and bounded.
struct Group {
  std::uint64_t key = 0;  // equal for ranks of one group, on every host
  // By the index of the node in Fold::nodes; each list is sorted. Ranks are global.
  std::map<int, std::vector<int>> ranks = {};
  Activity activity = {};
  Place place = {};
  char state = '?';        // of the main thread: that of the lowest rank
  std::string wchan = {};  // where the lowest rank's main thread waits in the kernel
  std::string wait = {};   // the same in a word: "poll"
  std::string child = {};  // "loader 3.1, pid 8123, state D, nfs_wait"; "": nothing to say
  Place child_place = {};  // where that child is
  bool holds_gil = false;
  bool computes = false;  // the main thread of a rank uses CPU
  bool child_runs = false;
  Millis quiet = {};  // the shortest of its ranks (motion.h)
  Millis same = {};
};

struct Fold {
  std::vector<std::string> nodes = {};
  std::vector<Group> groups = {};  // by their lowest rank
};

// A rank with what the other parts of this room say about it.
struct Seen {
  const RankLook* look = nullptr;
  Activity activity = {};
  Motion motion = {};
};

Fold fold(const std::string& node, std::span<const Seen> ranks);

// Merges folds, in time linear in the number of their groups. A rank that is in several folds stays
// in the first.
Fold merge(std::span<const Fold> folds);

std::vector<int> ranks_of(const Group& group);  // sorted
std::size_t count_of(const Group& group);
bool is_alive(const Group& group);  // its ranks have not ended
// Returns the ranks of all groups but the ended ones.
std::size_t count_alive(const Fold& fold);
// Returns the node of a rank. "": no such rank.
std::string_view node_of(const Fold& fold, int rank);

// Returns whether both say the same, apart from ages that have grown: there is nothing to send.
bool same_but_older(const Fold& before, const Fold& now);

// A line of JSON. At most 2 KiB for 8 ranks: long texts are shortened.
std::string fold_json(const Fold& fold);
// Reads a fold of another agent, which may be of another version. Fails with Errc::corrupt.
Result<Fold> read_fold(std::string_view json);

}  // namespace lockstep::looks
