// The provider RunPod. Its machines are containers ("pods") without a private network: a rental has
// one node.
#pragma once

#include "cloud/provider.h"

#include <memory>

namespace lockstep::cloud::runpod {

std::unique_ptr<Provider> make_provider(Ground ground);

}  // namespace lockstep::cloud::runpod
