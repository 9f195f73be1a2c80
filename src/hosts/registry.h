// What this user knows of clusters: their names and nodes, in $XDG_STATE_HOME/lockstep/state.db.
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
  std::string source = "ssh";   // where its nodes come from: "ssh", "slurm", "cloud"
  std::int64_t created_ms = 0;  // Unix time
  // Node 0 first. Of Slurm's: its login host, or none (this machine). Of rented ones: those that
  // are there now.
  std::vector<Node> nodes;

  bool is_slurm() const { return source == "slurm"; }
  bool is_rented() const { return source == "cloud"; }
};

// 1 to 63 of A-Z a-z 0-9 . _ - beginning with a letter or digit, and not "local".
Status check_cluster_name(const std::string& name);

class Registry {
 public:
  // folder: where state.db is (io::state_folder()); it is made for this user alone.
  static Result<Registry> open(const std::string& folder);

  // already_exists where there is one of that name.
  Status add(const Cluster& cluster) const;
  // In place of the one of that name, if there is one; its host keys stay.
  Status put(const Cluster& cluster) const;
  // not_found names those that there are.
  Result<Cluster> find(const std::string& name) const;
  Result<std::vector<Cluster>> list() const;  // by name
  Status remove(const std::string& name) const;

  // Removes files of host keys of clusters that there are no more; returns them.
  Result<std::vector<std::string>> remove_stray_pins() const;

  // The file of the host keys that were accepted for a cluster.
  std::string pins_file(const std::string& name) const;

 private:
  Registry(db::Database database, std::string folder)
      : database_(std::move(database)), folder_(std::move(folder)) {}
  Status insert(const Cluster& cluster) const;
  Result<std::vector<Node>> nodes_of(const std::string& name) const;

  db::Database database_;
  std::string folder_;
};

}  // namespace lockstep::hosts
