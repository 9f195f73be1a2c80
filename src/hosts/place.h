// Resolves a word of the command line to the places where a command runs: a known cluster, some of
// its nodes, or a host.
#pragma once

#include "base/error.h"
#include "hosts/command_run.h"
#include "hosts/registry.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hosts {

// Overrides for known hosts. Missing fields keep the known value.
struct HostOptions {
  std::optional<std::string> user = {};
  std::optional<std::string> key_path = {};
  std::optional<std::string> jump = {};
};

// A private key that the user names: "~/" in front is his home. invalid_input: no file can be read
// there. ssh itself would go on without the key and fail with another reason.
Result<std::string> check_key_path(const std::string& path);

// Numbers of nodes out of `count`: "all", "0", "1-3", "0,2-3". Errors name what is wrong.
Result<std::vector<std::size_t>> parse_node_numbers(std::string_view text, std::size_t count);

// Stands for this machine where a host is asked for.
inline constexpr std::string_view kHere = "local";

// The cluster without these hosts. Each is given as it was added ("user@host", "host"), or by its
// number ("1", "gpus-1"). Errors: one is not in it, is meant twice, or none would be left.
Result<Cluster> without_hosts(const Cluster& cluster, const std::vector<std::string>& hosts);

// A host as ssh takes it, never a cluster's name.
Result<HostPlace> place_of_host(const std::string& where, const HostOptions& options);

// where: the name of a cluster, "local", else a host as ssh takes it. nodes: for a cluster;
// nullopt: all.
Result<std::vector<HostPlace>> find_places(const Registry& registry, const std::string& where,
                                           const std::optional<std::string>& nodes,
                                           const HostOptions& options);

}  // namespace lockstep::hosts
