#include "looks/node_line.h"

#include "base/number_ranges.h"
#include "looks/hang_words.h"
#include "looks/row.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace lockstep::looks {
namespace {

constexpr std::size_t kMostRanges = 8;  // of one line

// The lines of a node, with its lowest rank.
struct NodePart {
  int lowest = std::numeric_limits<int>::max();
  std::vector<std::pair<int, NodeLine>> lines = {};  // each with its own lowest rank
};

// A verdict may tell ranks with equal stacks apart.
void add_lines(const std::string& node, const Group& group, const std::vector<int>& ranks,
               const Verdict& verdict, NodePart& into) {
  std::map<std::string_view, std::vector<int>> by_state;
  for (const int rank : ranks)
    by_state[rank_state(rank, group.activity, group.quiet, verdict)].push_back(rank);
  for (const auto& [state, same] : by_state) {
    into.lowest = std::min(into.lowest, same.front());
    into.lines.emplace_back(same.front(), NodeLine{.node = node,
                                                   .state = std::string(state),
                                                   .ranks = ranges_text(same, kMostRanges),
                                                   .count = same.size(),
                                                   .doing = activity_words(group.activity),
                                                   .where = where_words(group.place),
                                                   .quiet_ms = group.quiet.count()});
  }
}

}  // namespace

NodeLines node_lines(const Fold& fold, const Verdict& verdict) {
  std::vector<NodePart> parts(fold.nodes.size());
  for (const Group& group : fold.groups)
    for (const auto& [node, ranks] : group.ranks) {
      const auto at = static_cast<std::size_t>(node);
      if (at < parts.size()) add_lines(fold.nodes[at], group, ranks, verdict, parts[at]);
    }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const NodePart& a, const NodePart& b) { return a.lowest < b.lowest; });
  NodeLines all;
  for (NodePart& part : parts) {
    std::stable_sort(part.lines.begin(), part.lines.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [rank, line] : part.lines) {
      if (all.lines.size() == kMostNodeLines)
        ++all.more;
      else
        all.lines.push_back(std::move(line));
    }
  }
  return all;
}

}  // namespace lockstep::looks
