// The provider Lambda Cloud.
#pragma once

#include "cloud/provider.h"

#include <memory>

namespace lockstep::cloud::lambda {

std::unique_ptr<Provider> make_provider(Ground ground);

}  // namespace lockstep::cloud::lambda
