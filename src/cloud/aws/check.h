// Checks the keys' rights, the account's quotas and what is missing. Free of charge; makes nothing.
#pragma once

#include "cloud/aws/api.h"

namespace lockstep::cloud::aws {

// Returns "account 123456789012, user/ann".
Asked<std::string> account_of(Web& web, Api& api);

std::vector<Finding> check_account(Web& web, Api& api);

}  // namespace lockstep::cloud::aws
