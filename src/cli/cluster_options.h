// The command lines of `lockstep cluster`.
#pragma once

#include "cli/options.h"
#include "cli/place_options.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

// Options of cluster add and add-host.
struct ClusterAddOptions {
  std::vector<std::string> hosts;
  std::vector<std::string> host_lists;  // "a,b"
  std::optional<std::string> hosts_file;
  std::optional<std::string> user;
  std::optional<std::string> key_path;
  std::optional<std::string> jump;
  bool slurm = false;
  std::optional<std::string> login;
  std::optional<std::string> nodes;  // with --on-demand: how many
  bool replace = false;
  bool json = false;
};

// Options of cluster list, show, remove-host and remove.
struct ClusterShowOptions {
  bool json = false;
  std::optional<std::string> forget_node;
};

struct ClusterCheckOptions {
  bool json = false;
  bool repair = false;  // remove leftovers of killed clients, here and on the hosts
};

const Table& cluster_add_table();
const Table& cluster_list_table();
const Table& cluster_show_table();
const Table& cluster_check_table();
const Table& cluster_remove_table();
const Table& cluster_add_host_table();
const Table& cluster_remove_host_table();

}  // namespace lockstep::cli
