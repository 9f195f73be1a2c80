#include "hosts/registry.h"

#include "base/text.h"
#include "hosts/state_file.h"
#include "io/own_folders.h"
#include "ssh/pins.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace lockstep::hosts {
namespace {

constexpr std::size_t kMostName = 63;

template <class Number>
void bind_optional(db::Statement& statement, int parameter, const std::optional<Number>& value) {
  value ? statement.bind(parameter, static_cast<std::int64_t>(*value))
        : statement.bind_null(parameter);
}

}  // namespace

Status check_cluster_name(const std::string& name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  // The name becomes part of a file name (pins_file()) and a word of command lines, so refuse '/',
  // spaces and a leading '-' or '.'.
  const bool good = !name.empty() && name.size() <= kMostName && is_plain(name.front()) &&
                    std::all_of(name.begin(), name.end(), [&](char c) {
                      return is_plain(c) || c == '.' || c == '_' || c == '-';
                    });
  if (!good)
    return fail(Errc::invalid_input,
                fmt::format("'{}' cannot be the name of a cluster", printable(name)),
                "use letters, digits, '.', '_' and '-', 63 at most");
  if (name == "local") return fail(Errc::invalid_input, "'local' is this machine, not a cluster");
  return {};
}

Result<Registry> Registry::open(const std::string& folder) {
  LOCKSTEP_TRY_ASSIGN(db::Database database, open_state(folder));
  return Registry(std::move(database), folder);
}

std::string Registry::pins_file(const std::string& name) const {
  return folder_ + "/" + std::string(ssh::kPinsPrefix) + name;
}

Status Registry::add(const Cluster& cluster) const {
  // The transaction takes the write lock now. Two processes cannot both find the name free.
  LOCKSTEP_TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(database_));
  LOCKSTEP_TRY_ASSIGN(db::Statement known,
                      database_.prepare("SELECT 1 FROM clusters WHERE name = ?"));
  known.bind(1, cluster.name);
  LOCKSTEP_TRY_ASSIGN(const bool there, known.step());
  if (there)
    return fail(Errc::already_exists, fmt::format("cluster {} already exists", cluster.name),
                fmt::format("add hosts with lockstep cluster add-host {0} HOST, or forget the "
                            "cluster with lockstep cluster remove {0}",
                            cluster.name));
  LOCKSTEP_TRY(insert(cluster));
  return transaction.commit();
}

Status Registry::put(const Cluster& cluster) const {
  LOCKSTEP_TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(database_));
  // The nodes go with the cluster (ON DELETE CASCADE). A single transaction for both steps: readers
  // see the old cluster or the new one.
  LOCKSTEP_TRY_ASSIGN(db::Statement old, database_.prepare("DELETE FROM clusters WHERE name = ?"));
  old.bind(1, cluster.name);
  LOCKSTEP_TRY(old.run());
  LOCKSTEP_TRY(insert(cluster));
  return transaction.commit();
}

Status Registry::insert(const Cluster& cluster) const {
  LOCKSTEP_TRY_ASSIGN(db::Statement add,
                      database_.prepare("INSERT INTO clusters VALUES (?, ?, ?)"));
  add.bind(1, cluster.name);
  add.bind(2, cluster.source);
  add.bind(3, cluster.created_ms);
  LOCKSTEP_TRY(add.run());
  LOCKSTEP_TRY_ASSIGN(db::Statement node,
                      database_.prepare("INSERT INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    const Node& each = cluster.nodes[i];
    node.bind(1, cluster.name);
    // The number keeps the order: ranks follow the order of the nodes.
    node.bind(2, static_cast<std::int64_t>(i));
    node.bind(3, each.target.host);
    // NULL and "" differ: without a user, ssh chooses one by the user's own configuration.
    each.target.user ? node.bind(4, *each.target.user) : node.bind_null(4);
    bind_optional(node, 5, each.target.port);
    node.bind(6, each.target.key_path);
    node.bind(7, each.target.jump);
    bind_optional(node, 8, each.slots);
    LOCKSTEP_TRY(node.run());
  }
  return {};
}

Result<std::vector<Node>> Registry::nodes_of(const std::string& name) const {
  LOCKSTEP_TRY_ASSIGN(db::Statement find,
                      database_.prepare("SELECT host, user, port, key_path, jump, slots FROM nodes "
                                        "WHERE cluster = ? ORDER BY number"));
  find.bind(1, name);
  std::vector<Node> nodes;
  for (;;) {
    LOCKSTEP_TRY_ASSIGN(const bool row, find.step());
    if (!row) return nodes;
    Node node;
    node.target.host = find.text(0);
    if (!find.is_null(1)) node.target.user = find.text(1);
    if (!find.is_null(2)) node.target.port = static_cast<int>(find.number(2));
    node.target.key_path = find.text(3);
    node.target.jump = find.text(4);
    if (!find.is_null(5)) node.slots = static_cast<int>(find.number(5));
    nodes.push_back(std::move(node));
  }
}

Result<std::vector<Cluster>> Registry::list() const {
  LOCKSTEP_TRY_ASSIGN(
      db::Statement find,
      database_.prepare("SELECT name, source, created_ms FROM clusters ORDER BY name"));
  std::vector<Cluster> clusters;
  for (;;) {
    LOCKSTEP_TRY_ASSIGN(const bool row, find.step());
    if (!row) break;
    clusters.push_back({find.text(0), find.text(1), find.number(2), {}});
  }
  for (Cluster& cluster : clusters) {
    LOCKSTEP_TRY_ASSIGN(cluster.nodes, nodes_of(cluster.name));
  }
  return clusters;
}

Result<Cluster> Registry::find(const std::string& name) const {
  LOCKSTEP_TRY_ASSIGN(std::vector<Cluster> clusters, list());
  std::vector<std::string> names;
  for (Cluster& cluster : clusters) {
    if (cluster.name == name) return std::move(cluster);
    names.push_back(cluster.name);
  }
  return fail(Errc::not_found, fmt::format("there is no cluster {}", printable(name)),
              names.empty() ? "make a cluster with lockstep cluster add NAME --host user@host"
                            : "there are: " + join(names, ", "));
}

Status Registry::remove(const std::string& name) const {
  LOCKSTEP_TRY(find(name));
  LOCKSTEP_TRY_ASSIGN(db::Statement remove,
                      database_.prepare("DELETE FROM clusters WHERE name = ?"));
  remove.bind(1, name);
  LOCKSTEP_TRY(remove.run());
  // The cluster is removed already, so an error here is no failure. A file that stays behind is
  // safe: hosts with other keys are refused.
  (void)drop_pins(name);
  return {};
}

// Removes the host keys of a removed cluster: a later cluster of the same name must not inherit
// them. If another process has added the name again, its hosts' new keys are in this file. Without
// them, the next connection would accept any key. The write lock keeps the name free meanwhile.
Status Registry::drop_pins(const std::string& name) const {
  LOCKSTEP_TRY_ASSIGN(const db::Transaction transaction, db::Transaction::begin(database_));
  LOCKSTEP_TRY_ASSIGN(const std::vector<Cluster> clusters, list());
  if (std::none_of(clusters.begin(), clusters.end(),
                   [&](const Cluster& each) { return each.name == name; }))
    unlink(pins_file(name).c_str());
  return {};
}

// Holds the write lock of the database during the search: no cluster can be added meanwhile, so no
// file in use is removed.
Result<std::vector<std::string>> Registry::remove_stray_pins() const {
  LOCKSTEP_TRY_ASSIGN(const db::Transaction transaction, db::Transaction::begin(database_));
  LOCKSTEP_TRY_ASSIGN(const std::vector<Cluster> clusters, list());
  std::vector<std::string> removed;
  std::error_code error;
  std::filesystem::directory_iterator at(folder_, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string path = folder_ + "/" + at->path().filename().string();
    const auto in_use = [&](const Cluster& each) { return pins_file(each.name) == path; };
    if (at->path().filename().string().starts_with(ssh::kPinsPrefix) &&
        std::none_of(clusters.begin(), clusters.end(), in_use) && unlink(path.c_str()) == 0)
      removed.push_back(path);
  }
  return removed;
}

}  // namespace lockstep::hosts
