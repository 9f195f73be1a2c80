// Reads and changes the words of `lockstep run` for a pre-flight.
#include "base/text.h"
#include "launch/backend_row.h"
#include "slurm/preflight.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

namespace lockstep::slurm {
namespace {

constexpr std::string_view kNodes = "--nnodes=";
constexpr std::string_view kSpares = "--spares=";

using Words = std::vector<std::string>;

// Returns the value of an option. The last one counts. Words behind "--" belong to the script.
std::string value_of(const Words& words, std::string_view option) {
  const auto end = std::find(words.begin(), words.end(), "--");
  std::string value;
  for (auto word = words.begin(); word != end; ++word)
    if (word->starts_with(option)) value = word->substr(option.size());
  return value;
}

void replace_option(Words& words, std::string_view option, const std::string& value) {
  const auto end = std::find(words.begin(), words.end(), "--");
  for (auto word = words.begin(); word != end; ++word)
    if (word->starts_with(option)) *word = std::string(option) + value;
}

// Returns how many nodes --rdzv-endpoint may name. Words without a backend get a single node, which
// every backend takes.
std::size_t most_places(std::string_view backend) {
  const launch::BackendRow* row = launch::find_backend(backend);
  return row != nullptr && row->place == launch::BackendRow::Place::node ? row->most_endpoints : 1;
}

}  // namespace

NodeCounts size_of(std::string_view nnodes, int nodes) {
  const auto ends = split(nnodes, ':');
  const auto least = parse_int(ends.front());
  const auto most = parse_int(ends.back());
  if (!least || !most || *least < 1 || *most < *least || *most > nodes) return {nodes, nodes};
  return {static_cast<int>(*most), static_cast<int>(*least)};
}

NodeCounts size_in(const Words& words, int nodes) {
  return size_of(value_of(words, kNodes), nodes);
}

Words words_without(const Words& words, const Words& nodes, const PreflightDecision& decision,
                    int port) {
  Words rest;
  for (const std::string& node : nodes)
    if (std::none_of(decision.left_out.begin(), decision.left_out.end(),
                     [&](const LeftOut& each) { return each.node == node; }))
      rest.push_back(node);
  if (rest.empty() || rest.size() == nodes.size()) return words;
  const NodeCounts size = size_in(words, static_cast<int>(nodes.size()));
  const int left = static_cast<int>(rest.size());
  const int most = std::min(size.wanted, left);
  Words fit = words;
  replace_option(fit, kNodes, fmt::format("{}:{}", std::min(size.at_least, most), most));
  replace_option(fit, kSpares, std::to_string(left - most));
  // By default the agents take all nodes of the step from Slurm, and meet at the first. Name the
  // remaining nodes instead.
  if (value_of(fit, "--rdzv-endpoint=").empty()) {
    const std::size_t most_hosts = most_places(value_of(fit, "--rdzv-backend="));
    Words places;
    for (const std::string& node : rest)
      if (places.size() < most_hosts) places.push_back(fmt::format("{}:{}", node, port));
    fit.insert(fit.begin(), "--rdzv-endpoint=" + join(places, ","));
  }
  if (value_of(fit, kNodes).empty()) fit.insert(fit.begin(), fmt::format("{}{}", kNodes, most));
  return fit;
}

}  // namespace lockstep::slurm
