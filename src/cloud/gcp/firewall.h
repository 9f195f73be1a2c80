// Who may reach port 22 of an installation's machines: one rule of the project's default network.
#pragma once

#include "cloud/gcp/api.h"

#include <string>
#include <vector>

namespace lockstep::cloud::gcp {

// From those networks and from nowhere else; makes the rule or changes it.
tl::expected<void, ApiError> open_to(Api& api, Web& web, const std::string& owner,
                                     const std::vector<std::string>& cidrs);
// From there, too: the rule is that of all rentals.
tl::expected<void, ApiError> open_also_to(Api& api, Web& web, const std::string& owner,
                                          const std::string& cidr);
tl::expected<void, ApiError> remove_rule(Api& api, Web& web, const std::string& owner);

}  // namespace lockstep::cloud::gcp
