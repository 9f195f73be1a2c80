// Checks a Google account for `lockstep cloud check`: keys, rights, quotas, images, prices. Costs
// nothing.
#pragma once

#include "cloud/gcp/api.h"
#include "cloud/provider.h"

#include <vector>

namespace lockstep::cloud::gcp {

std::vector<Finding> check_account(Api& api, Web& web, const Ground& ground);

}  // namespace lockstep::cloud::gcp
