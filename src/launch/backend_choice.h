// From a configuration to the rendezvous backend that it means.
#pragma once

#include "io/loop.h"
#include "launch/launch_config.h"
#include "rendezvous/backend.h"

#include <memory>

namespace lockstep::launch {

// A job of one node meets nobody, whatever its backend is.
std::unique_ptr<rendezvous::Backend> make_backend(io::Loop& loop, const LaunchConfig& config,
                                                  rendezvous::NodeOffer offer,
                                                  rendezvous::OfferStore offer_store);

}  // namespace lockstep::launch
