#include "rent/rented_cluster.h"

#include "hosts/place.h"
#include "hosts/registry.h"
#include "io/own_folders.h"
#include "rent/rental_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::rent {

Status check_name(const std::string& cluster) {
  LOCKSTEP_TRY(hosts::check_cluster_name(cluster));
  LOCKSTEP_TRY_ASSIGN(const hosts::Registry registry, hosts::Registry::open(io::state_folder()));
  const auto known = registry.find(cluster);
  if (!known || known->is_rented()) return {};
  return fail(Errc::already_exists,
              fmt::format("'{}' is already the name of a cluster of hosts", cluster),
              "take another name, or lockstep cluster remove " + cluster);
}

Status take_name(const cloud::Rental& rental) {
  LOCKSTEP_TRY(check_name(rental.cluster));
  LOCKSTEP_TRY_ASSIGN(const hosts::Registry registry, hosts::Registry::open(io::state_folder()));
  if (registry.find(rental.cluster)) return {};
  return registry.put(
      {.name = rental.cluster, .source = "cloud", .created_ms = rental.created_ms, .nodes = {}});
}

Status enter_cluster(const cloud::Rental& rental) {
  LOCKSTEP_TRY_ASSIGN(const hosts::Registry registry, hosts::Registry::open(io::state_folder()));
  hosts::Cluster cluster{
      .name = rental.cluster, .source = "cloud", .created_ms = rental.created_ms, .nodes = {}};
  for (hosts::HostPlace& place : rented_places(rental, {}, user_key_file(rental.cluster)))
    cluster.nodes.push_back({.target = std::move(place.target)});
  note_use(rental.cluster);
  return registry.put(cluster);
}

Status leave_cluster(cloud::Journal& journal, const std::string& name) {
  LOCKSTEP_TRY_ASSIGN(const hosts::Registry registry, hosts::Registry::open(io::state_folder()));
  const auto known = registry.find(name);
  if (!known) return {};
  if (!known->is_rented()) return {};
  LOCKSTEP_TRY_ASSIGN(const bool standing, journal.has_standing(name));
  if (!standing) return registry.remove(name);
  // Keep the empty cluster of a standing rental: its next use rents machines again.
  return registry.put(
      {.name = name, .source = "cloud", .created_ms = known->created_ms, .nodes = {}});
}

std::string node_name(const cloud::Rental& rental, int node) {
  return fmt::format("{}-{}", rental.cluster, node);
}

std::vector<cloud::Held*> machines_there(cloud::Rental& rental) {
  std::vector<cloud::Held*> found;
  for (cloud::Attempt& attempt : rental.attempts)
    for (cloud::Held& held : attempt.machines)
      if (attempt.state == cloud::Attempt::State::running && held.gone_ms == 0)
        found.push_back(&held);
  std::stable_sort(found.begin(), found.end(),
                   [](const cloud::Held* a, const cloud::Held* b) { return a->node < b->node; });
  return found;
}

std::vector<hosts::HostPlace> rented_places(const cloud::Rental& rental, const std::string& pins,
                                            const std::string& key_path) {
  cloud::Rental copy = rental;
  std::vector<hosts::HostPlace> places;
  for (const cloud::Held* held : machines_there(copy)) {
    const cloud::Machine& machine = held->machine;
    // Always name the port, as first contact does: ssh then reuses that connection.
    hosts::HostPlace place{
        .name = node_name(rental, held->node),
        .target = {.host = machine.address, .port = machine.port, .key_path = key_path},
        .pins = pins};
    place.target.host_keys = ssh::HostKeys::pinned;
    if (!machine.user.empty()) place.target.user = machine.user;
    places.push_back(std::move(place));
  }
  return places;
}

Result<std::vector<hosts::HostPlace>> present_places(const std::string& cluster) {
  LOCKSTEP_TRY_ASSIGN(const hosts::Registry registry, hosts::Registry::open(io::state_folder()));
  const auto known = registry.find(cluster);
  if (!known || !known->is_rented() || known->nodes.empty())
    return fail(Errc::unavailable, fmt::format("the machines of '{}' are gone", cluster));
  return hosts::find_places(registry, cluster, {}, {});
}

}  // namespace lockstep::rent
