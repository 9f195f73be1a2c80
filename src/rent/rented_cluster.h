// A rental's entry in the registry of clusters. The entry has the machines as nodes for as long as
// they exist.
#pragma once

#include "base/error.h"
#include "cloud/journal.h"
#include "cloud/rental.h"
#include "hosts/host_link.h"

#include <string>
#include <vector>

namespace lockstep::rent {

// Refuses a name that a cluster of hosts has.
Status check_name(const std::string& cluster);
// Enters the cluster without nodes. Call before anything is rented: the cluster's file of host keys
// is used from now on.
Status take_name(const cloud::Rental& rental);
// Enters the machines as the cluster's nodes.
Status enter_cluster(const cloud::Rental& rental);
// Removes the cluster. The cluster of a standing rental (Journal::standing) only loses its nodes.
Status leave_cluster(cloud::Journal& journal, const std::string& cluster);

// Returns the machines that exist, by node.
std::vector<cloud::Held*> machines_there(cloud::Rental& rental);
// Returns the name of a node for people and in the registry: "gpus-0".
std::string node_name(const cloud::Rental& rental, int node);
// Returns the rental's machines as places for commands, in the order of their nodes.
std::vector<hosts::HostPlace> rented_places(const cloud::Rental& rental, const std::string& pins,
                                            const std::string& key_path);
// Returns the machines that the cluster has in the registry. unavailable: they are gone.
Result<std::vector<hosts::HostPlace>> present_places(const std::string& cluster);

}  // namespace lockstep::rent
