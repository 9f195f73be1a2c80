// What keys may do, what the account has, and what is missing. Costs nothing and makes nothing.
#pragma once

#include "cloud/aws/api.h"

namespace lockstep::cloud::aws {

// "account 123456789012, user/ann"
Asked<std::string> account_of(Web& web, Api& api);

std::vector<Finding> check_account(Web& web, Api& api);

// The smallest set of rights, as JSON for AWS's console.
std::string_view least_policy();

}  // namespace lockstep::cloud::aws
