// The table of providers: the one place that names them.
#pragma once

#include "cloud/provider.h"

#include <memory>
#include <vector>

namespace lockstep::rent {

// All that there are, whether there are keys for them or not.
std::vector<std::unique_ptr<cloud::Provider>> cloud_providers(const cloud::Ground& ground);

}  // namespace lockstep::rent
