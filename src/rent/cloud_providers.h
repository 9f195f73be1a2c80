// The table of providers. No other file above the providers' own folders names them all.
#pragma once

#include "cloud/provider.h"

#include <memory>
#include <vector>

namespace lockstep::rent {

// Returns all providers, with or without credentials.
std::vector<std::unique_ptr<cloud::Provider>> cloud_providers(const cloud::Ground& ground);

}  // namespace lockstep::rent
