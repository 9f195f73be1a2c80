#include "slurm/sinfo_command.h"

#include "base/text.h"
#include "slurm/fields.h"
#include "slurm/times.h"

#include <algorithm>
#include <array>
#include <utility>

namespace lockstep::slurm {
namespace {

// %P marks the default partition with a star.
constexpr const char* kFormat = "%P|%a|%l|%D|%T|%c|%m|%G|%N";
constexpr std::size_t kFields = 9;
// The reason is the last field, because it may contain the separator.
constexpr const char* kReasonFormat = "%T|%H|%N|%E";
constexpr std::size_t kReasonFields = 4;

// Reads "8" or "8+", which means that the smallest node has 8.
std::int64_t at_least(std::string_view field) {
  if (field.ends_with('+')) field.remove_suffix(1);
  return parse_int(field).value_or(0);
}

// Splits at commas outside parentheses. Commas inside separate sockets.
std::vector<std::string> split_outside_parentheses(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == ',' && depth <= 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

}  // namespace

std::vector<GpuKind> parse_gpus(std::string_view gres) {
  std::vector<GpuKind> gpus;
  for (const std::string& part : split_outside_parentheses(gres)) {
    const auto words = split(part.substr(0, part.find('(')), ':');
    if (strip(words[0]) != "gpu" || words.size() > 3) continue;
    const auto count = words.size() == 1 ? 1 : small_number(words.back());
    if (count && *count > 0) gpus.push_back({words.size() == 3 ? words[1] : "", *count});
  }
  return gpus;
}

std::vector<std::string> sinfo_command() {
  return {"sinfo", "--noheader", "--all", std::string("--format=") + kFormat};
}

std::vector<NodeGroup> parse_sinfo(std::string_view text) {
  std::vector<NodeGroup> groups;
  for (const std::string& line : split(text, '\n')) {
    const auto fields = split_fields(line, kFields);
    if (fields.size() != kFields) continue;
    NodeGroup group;
    group.partition = strip(fields[0]);
    group.is_default = group.partition.ends_with('*');
    if (group.is_default) group.partition.pop_back();
    group.availability = fields[1];
    group.up = group.availability == "up";
    group.time_limit = parse_duration(fields[2]);
    group.count = small_number(fields[3]).value_or(0);
    group.state = fields[4];
    group.cpus = static_cast<int>(std::clamp<std::int64_t>(at_least(fields[5]), 0, INT32_MAX));
    group.memory_mb = std::max<std::int64_t>(at_least(fields[6]), 0);
    group.gpus = parse_gpus(known_text(fields[7]));
    group.nodes = strip(fields[8]);
    if (!group.partition.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<std::string> sinfo_reasons_command() {
  return {"sinfo", "--noheader", "--all", "--list-reasons",
          std::string("--format=") + kReasonFormat};
}

std::vector<OutOfService> parse_sinfo_reasons(std::string_view text) {
  std::vector<OutOfService> all;
  for (const std::string& line : split(text, '\n')) {
    const auto fields = split_fields(line, kReasonFields);
    if (fields.size() != kReasonFields || fields[2].empty()) continue;
    all.push_back({.nodes = std::string(strip(fields[2])),
                   .state = fields[0],
                   .since = parse_moment(fields[1]),
                   .reason = std::string(strip(fields[3]))});
  }
  return all;
}

bool is_in_service(std::string_view state) {
  // Parts of states: "drain" matches drained and draining.
  constexpr std::array<std::string_view, 7> kOut = {"down", "drain",   "fail", "maint",
                                                    "err",  "unknown", "inval"};
  const std::string small = to_lower(state);
  const auto is_out = [&](std::string_view word) { return small.find(word) != std::string::npos; };
  // A star marks a node that does not answer.
  return !small.ends_with('*') && std::none_of(kOut.begin(), kOut.end(), is_out);
}

}  // namespace lockstep::slurm
