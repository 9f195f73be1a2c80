// Where machines are put: the default network's part in each zone, and one security group of this
// installation.
#pragma once

#include "cloud/aws/answers.h"
#include "cloud/aws/api.h"

#include <map>
#include <optional>
#include <string>

namespace lockstep::cloud::aws {

struct Network {
  std::string vpc;                             // "": the region has no default one
  std::map<std::string, std::string> subnets;  // by zone
  std::optional<Group> group;                  // this installation's
};

std::string group_name(std::string_view owner);

// What is there; makes nothing.
Asked<Network> find_network(Web& web, Api& api, const std::string& region,
                            const std::string& owner);
// Makes the group if need be, and opens 22 to the CIDR. network.group is there afterwards.
Asked<void> open_group(Web& web, Api& api, const std::string& region, const std::string& owner,
                       const std::string& cidr, Network& network);
// Closes 22 to all but those CIDRs.
Asked<void> close_others(Web& web, Api& api, const std::string& region, const Group& group,
                         const std::vector<std::string>& wanted);
// not_found codes are good: it is gone.
Asked<void> delete_group(Web& web, Api& api, const std::string& region, const Group& group);

}  // namespace lockstep::cloud::aws
