// Who may reach port 22 of an installation's machines: one rule of the project's default network.
#pragma once

#include "cloud/gcp/api.h"

#include <string>

namespace lockstep::cloud::gcp {

// From there and from nowhere else; makes the rule or changes it.
tl::expected<void, ApiError> open_to(Api& api, Web& web, const std::string& owner,
                                     const std::string& cidr);
tl::expected<void, ApiError> remove_rule(Api& api, Web& web, const std::string& owner);

}  // namespace lockstep::cloud::gcp
