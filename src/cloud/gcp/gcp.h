// The provider Google Compute Engine.
#pragma once

#include "cloud/provider.h"

#include <memory>

namespace lockstep::cloud::gcp {

std::unique_ptr<Provider> make_provider(Ground ground);

}  // namespace lockstep::cloud::gcp
