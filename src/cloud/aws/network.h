// The network of machines: the default VPC's subnet in each zone, and one security group of this
// installation.
#pragma once

#include "cloud/aws/answers.h"
#include "cloud/aws/api.h"

#include <map>
#include <optional>
#include <string>

namespace lockstep::cloud::aws {

struct Network {
  std::string vpc;                             // "": the region has no default VPC
  std::map<std::string, std::string> subnets;  // by zone
  std::optional<Group> group;                  // this installation's
};

std::string group_name(std::string_view owner);

// Looks for the network. Makes nothing.
Asked<Network> find_network(Web& web, Api& api, const std::string& region,
                            const std::string& owner);
// Opens port 22 to the CIDR. Makes the group first if it is missing, and sets network.group.
Asked<void> open_group(Web& web, Api& api, const std::string& region, const std::string& owner,
                       const std::string& cidr, Network& network);
// Closes port 22 to all but these CIDRs.
Asked<void> close_others(Web& web, Api& api, const std::string& region, const Group& group,
                         const std::vector<std::string>& wanted);
// Deletes the group; a missing group is not an error.
Asked<void> delete_group(Web& web, Api& api, const std::string& region, const Group& group);

}  // namespace lockstep::cloud::aws
