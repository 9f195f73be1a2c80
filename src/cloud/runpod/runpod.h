// RunPod, behind the face that all providers have: pods are containers, one node each.
#pragma once

#include "cloud/provider.h"

#include <memory>

namespace lockstep::cloud::runpod {

std::unique_ptr<Provider> make_provider(Ground ground);

}  // namespace lockstep::cloud::runpod
