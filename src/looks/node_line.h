// What the ranks of all nodes do, folded by node: for a page that one node serves. Pure.
#pragma once

#include "looks/fold.h"
#include "looks/verdict.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::looks {

// Ranks of one node that do the same. All texts are printable and bounded.
struct NodeLine {
  std::string node = {};
  std::string state = {};  // a word of kRankStateWords
  std::string ranks = {};  // "8-15"
  std::size_t count = 0;
  std::string doing = {};     // as RankRow::doing
  std::string where = {};     // as RankRow::where
  std::int64_t quiet_ms = 0;  // since when none of them has moved

  friend bool operator==(const NodeLine&, const NodeLine&) = default;
};

struct NodeLines {
  std::vector<NodeLine> lines = {};      // by the lowest rank of the node, at most kMostNodeLines
  std::size_t more = 0;                  // lines that are left out
  std::vector<std::string> silent = {};  // "node n2 has not told for 5 s"
};
inline constexpr std::size_t kMostNodeLines = 512;

NodeLines node_lines(const Fold& fold, const Verdict& verdict);

}  // namespace lockstep::looks
