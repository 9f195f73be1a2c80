// Names and differences of launched programs.
#include "rendezvous/launched.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep::rendezvous {
namespace {

constexpr std::size_t kMostNames = 4;
constexpr std::size_t kMostText = 100;

std::string plural(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// A few names and the number of all, so that a message about a thousand nodes stays readable.
struct Called {
  std::vector<std::string> some;
  std::size_t all = 0;
  void add(const std::string& name) {
    if (++all <= kMostNames) some.push_back(printable(name, kMostText));
  }
  std::string text() const {
    const std::string more =
        all > some.size() ? fmt::format(" and {} more", all - some.size()) : "";
    return join(some, ", ") + more;
  }
};

// Returns "3 (a, b), 1 (c)".
template <class T>
std::string values(const std::map<T, Called>& by_value) {
  std::vector<std::string> parts;
  for (const auto& [value, called] : by_value)
    parts.push_back(fmt::format("{} ({})", value, called.text()));
  return join(parts, ", ");
}

struct Role {
  std::size_t nodes = 0;
  std::size_t workers = 0;
  // Grouped by value: "8 (a, b), 4 (c)" shows the odd node at a glance.
  std::map<int, Called> by_workers;
  std::map<std::string, std::map<int, Called>> arguments_of;  // by program
};

void compare_roles(std::span<const NodeFacts> nodes, std::vector<std::string>& notes) {
  std::map<std::string, Role> roles;
  for (const NodeFacts& node : nodes) {
    Role& role = roles[node.role];
    ++role.nodes;
    role.workers += static_cast<std::size_t>(std::max(0, node.local_world_size));
    role.by_workers[node.local_world_size].add(node.called);
    // A node may have chosen not to tell its program.
    if (!node.launched.name.empty())
      role.arguments_of[node.launched.name][node.launched.arguments].add(node.called);
  }
  std::vector<std::string> counts;
  for (const auto& [name, role] : roles) {
    const std::string shown = printable(name, kMostText);
    counts.push_back(fmt::format("{} ({}, {})", shown, plural(role.nodes, "node"),
                                 plural(role.workers, "worker")));
    if (role.by_workers.size() > 1)
      notes.push_back(fmt::format("nodes of role '{}' differ in their number of workers: {}", shown,
                                  values(role.by_workers)));
    for (const auto& [program, by_count] : role.arguments_of)
      if (by_count.size() > 1)
        notes.push_back(fmt::format("{} is launched with different numbers of arguments: {}",
                                    printable(program, kMostText), values(by_count)));
  }
  if (roles.size() > 1) notes.push_back("the nodes have several roles: " + join(counts, ", "));
}

}  // namespace

std::string launched_name(std::string_view program) {
  // Such a name is a descriptor of this process, for instance bash's <(...).
  if (program.starts_with("/dev/fd/") || program.starts_with("/proc/")) return {};
  while (program.size() > 1 && program.ends_with('/'))
    program.remove_suffix(1);
  const std::size_t slash = program.rfind('/');
  if (slash != std::string_view::npos && program.size() > 1) program.remove_prefix(slash + 1);
  return std::string(program);
}

std::optional<Error> other_program(const NodeFacts& node, const NodeFacts& other,
                                   std::string_view run_id) {
  const Launched& mine = node.launched;
  const Launched& theirs = other.launched;
  // Programs of different roles may differ.
  if (node.role != other.role || mine.any || theirs.any || mine.name.empty() ||
      theirs.name.empty() || mine.name == theirs.name)
    return std::nullopt;
  return Error{
      Errc::invalid_input,
      fmt::format("{} launches {}, {} launches {}, both as role '{}' of the job '{}'",
                  printable(node.called, kMostText), printable(mine.name, kMostText),
                  printable(other.called, kMostText), printable(theirs.name, kMostText),
                  printable(node.role, kMostText), printable(run_id, kMostText)),
      "give another job another --rdzv-id, and another part of this job another --role; if the "
      "programs are meant to differ, pass --rdzv-conf entrypoint=any",
      0};
}

std::vector<std::string> differences(std::span<const NodeFacts> nodes) {
  std::map<int, Called> restarts;
  std::map<std::string, Called> versions;
  for (const NodeFacts& node : nodes) {
    if (node.max_restarts) restarts[*node.max_restarts].add(node.called);
    if (!node.launched.version.empty())
      versions[printable(node.launched.version, kMostText)].add(node.called);
  }
  std::vector<std::string> notes;
  if (restarts.size() > 1)
    notes.push_back(
        fmt::format("the nodes differ in --max-restarts, the lowest counts: {}", values(restarts)));
  if (versions.size() > 1)
    notes.push_back("the nodes run different versions of Lockstep: " + values(versions));
  compare_roles(nodes, notes);
  if (notes.size() > kMostNotes) notes.resize(kMostNotes);
  return notes;
}

}  // namespace lockstep::rendezvous
