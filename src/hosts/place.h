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

// Settings that override those of known hosts. A missing field keeps the known value.
struct HostOptions {
  std::optional<std::string> user = {};
  std::optional<std::string> key_path = {};
  std::optional<std::string> jump = {};
};

// Returns the absolute path of a private key that the user names; "~/" in front is the user's home.
// invalid_input: no readable file is there. ssh itself would go on without the key and fail for
// another reason.
Result<std::string> check_key_path(const std::string& path);

// Parses "all", "0", "1-3" or "0,2-3" into ascending numbers below `count`, each once. "" means
// all. Errors name the wrong part.
Result<std::vector<std::size_t>> parse_node_numbers(std::string_view text, std::size_t count);

// The name of this machine where a host is expected.
inline constexpr std::string_view kHere = "local";

// Returns the cluster without these hosts. A host is named as it was added ("user@host", "host"),
// or by number ("1", "gpus-1"). Fails if the cluster lacks a host, a name fits several hosts, or no
// host would be left.
Result<Cluster> without_hosts(const Cluster& cluster, const std::vector<std::string>& hosts);

// Returns the place of a host as ssh takes it. Never a cluster.
Result<HostPlace> place_of_host(const std::string& where, const HostOptions& options);

// Returns the places that a word stands for. where: the name of a cluster, "local", or a host as
// ssh takes it. nodes: numbers of a cluster's nodes; nullopt: all.
Result<std::vector<HostPlace>> find_places(const Registry& registry, const std::string& where,
                                           const std::optional<std::string>& nodes,
                                           const HostOptions& options);

}  // namespace lockstep::hosts
