// The firewall rule for port 22 of an installation's machines, in the project's default network.
#pragma once

#include "cloud/gcp/api.h"

#include <string>
#include <vector>

namespace lockstep::cloud::gcp {

// Opens port 22 to exactly these networks. Makes or changes the rule.
Asked<void> open_to(Api& api, Web& web, const std::string& owner,
                    const std::vector<std::string>& cidrs);
// Opens port 22 to more networks and closes none, since all rentals share the rule.
Asked<void> open_also_to(Api& api, Web& web, const std::string& owner, const std::string& cidr);
Asked<void> remove_rule(Api& api, Web& web, const std::string& owner);

}  // namespace lockstep::cloud::gcp
