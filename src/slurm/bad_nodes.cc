#include "slurm/bad_nodes.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace lockstep::slurm {
namespace {

constexpr double kMostWeight = 8;  // limit per node: the node comes back within four days
// A failure below this weight is dropped from the file, six days after a weight of 1.
constexpr double kForgotten = 1.0 / 64;
constexpr std::size_t kMostText = 200;
constexpr std::size_t kFields = 5;

// A failure in the future (another clock) counts in full.
double weight_now(const NodeFailure& failure, std::int64_t now) {
  const auto age = static_cast<double>(std::max<std::int64_t>(now - failure.time, 0));
  return failure.weight * std::exp2(-age / static_cast<double>(kHalfLife));
}

// Removes tabs, which separate the fields.
std::string one_field(std::string_view text) {
  std::string field = printable(text, kMostText);
  std::replace(field.begin(), field.end(), '\t', ' ');
  return field;
}

}  // namespace

std::string failure_line(const NodeFailure& failure) {
  return fmt::format("{}\t{:.3f}\t{}\t{}\t{}\n", failure.time, failure.weight,
                     one_field(failure.cluster), one_field(failure.node), one_field(failure.cause));
}

std::vector<NodeFailure> parse_failures(std::string_view text) {
  std::vector<NodeFailure> failures;
  for (const std::string& line : split(text, '\n')) {
    const auto fields = split(line, '\t');
    if (fields.size() != kFields || fields[3].empty()) continue;
    const auto time = parse_int(fields[0]);
    const auto weight = parse_float(fields[1]);
    if (!time || *time < 0 || !weight || !(*weight > 0) || *weight > kMostWeight) continue;
    failures.push_back({fields[2], fields[3], *time, *weight, fields[4]});
  }
  if (failures.size() > kMostFailures)
    failures.erase(failures.begin(), failures.end() - std::ptrdiff_t{kMostFailures});
  return failures;
}

std::vector<BadNode> bad_nodes(const std::vector<NodeFailure>& failures, std::string_view cluster,
                               std::int64_t now) {
  std::map<std::string, BadNode> by_name;
  for (const NodeFailure& failure : failures) {
    if (failure.cluster != cluster) continue;
    BadNode& node = by_name[failure.node];
    node.node = failure.node;
    // The cap keeps a node that failed often from staying away for weeks.
    node.weight = std::min(node.weight + weight_now(failure, now), kMostWeight);
    if (failure.time >= node.last) {
      node.last = failure.time;
      node.cause = failure.cause;
    }
  }
  std::vector<BadNode> bad;
  for (auto& [name, node] : by_name) {
    if (node.weight <= kThreshold) continue;
    // The sum of the failures decays as a whole, so its end follows from one logarithm.
    const double half_lives = std::log2(node.weight / kThreshold);
    node.back_at =
        now + static_cast<std::int64_t>(std::ceil(half_lives * static_cast<double>(kHalfLife)));
    bad.push_back(std::move(node));
  }
  return bad;
}

Status check_bad(const std::vector<BadNode>& bad, const std::string& node) {
  if (std::any_of(bad.begin(), bad.end(), [&](const BadNode& each) { return each.node == node; }))
    return {};
  return fail(Errc::not_found, fmt::format("node {} is not left out", printable(node)),
              "lockstep cluster show NAME lists the excluded nodes");
}

std::vector<NodeFailure> still_needed(const std::vector<NodeFailure>& failures,
                                      std::string_view cluster,
                                      const std::vector<std::string>& forgotten, std::int64_t now) {
  std::vector<NodeFailure> kept;
  for (const NodeFailure& failure : failures) {
    const bool forget = failure.cluster == cluster && std::find(forgotten.begin(), forgotten.end(),
                                                                failure.node) != forgotten.end();
    if (!forget && weight_now(failure, now) > kForgotten) kept.push_back(failure);
  }
  return kept;
}

}  // namespace lockstep::slurm
