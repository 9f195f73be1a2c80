// Keeps the user's clusters, with names and nodes, in $XDG_STATE_HOME/lockstep/state.db.
#pragma once

#include "base/error.h"
#include "db/database.h"
#include "ssh/target.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::hosts {

struct Node {
  ssh::Target target;
  std::optional<int> slots = {};
};

struct Cluster {
  std::string name;
  std::string source = "ssh";   // the kind of nodes: "ssh", "slurm", "cloud"
  std::int64_t created_ms = 0;  // Unix time
  // Node 0 first. Slurm: the login host, or none if this machine is the login host. Rented: the
  // machines that exist now.
  std::vector<Node> nodes;

  bool is_slurm() const { return source == "slurm"; }
  bool is_rented() const { return source == "cloud"; }
};

// Returns invalid_input unless the name has 1 to 63 of A-Z a-z 0-9 . _ - and begins with a letter
// or digit. "local" is refused, because the word means this machine.
Status check_cluster_name(const std::string& name);

// Every function may fail with an error of the database. Several processes may use the registry at
// once.
class Registry {
 public:
  // Opens the registry. folder: the folder of state.db (io::state_folder()), made for this user
  // alone.
  static Result<Registry> open(const std::string& folder);

  // Adds a cluster. already_exists: a cluster has that name.
  Status add(const Cluster& cluster) const;
  // Adds the cluster, or replaces the cluster of that name. Accepted host keys stay.
  Status put(const Cluster& cluster) const;
  // Returns the cluster. The error not_found names the known clusters.
  Result<Cluster> find(const std::string& name) const;
  // Returns all clusters, sorted by name.
  Result<std::vector<Cluster>> list() const;
  // Removes the cluster and the file of its host keys. The file stays if another process has added
  // a cluster of that name meanwhile.
  Status remove(const std::string& name) const;

  // Removes the host key files of clusters that no longer exist. Returns the removed files.
  Result<std::vector<std::string>> remove_stray_pins() const;

  // Returns the path of the file with the accepted host keys of a cluster.
  std::string pins_file(const std::string& name) const;

 private:
  Registry(db::Database database, std::string folder)
      : database_(std::move(database)), folder_(std::move(folder)) {}
  Status insert(const Cluster& cluster) const;
  Status drop_pins(const std::string& name) const;
  Result<std::vector<Node>> nodes_of(const std::string& name) const;

  db::Database database_;
  std::string folder_;
};

}  // namespace lockstep::hosts
