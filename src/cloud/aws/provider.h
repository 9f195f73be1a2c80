// The provider AWS EC2.
#pragma once

#include "cloud/provider.h"

#include <memory>

namespace lockstep::cloud::aws {

std::unique_ptr<Provider> make_provider(Ground ground);

}  // namespace lockstep::cloud::aws
