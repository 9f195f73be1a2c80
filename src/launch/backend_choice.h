// Creates the rendezvous backend that a configuration names.
#pragma once

#include "io/loop.h"
#include "launch/launch_config.h"
#include "rendezvous/backend.h"

#include <memory>

namespace lockstep::launch {

// Returns the backend of `config`. A job of one node gets the Solo backend, whatever the configured
// backend is, because no other node joins. loop must outlive the result.
std::unique_ptr<rendezvous::Backend> make_backend(io::Loop& loop, const LaunchConfig& config,
                                                  rendezvous::NodeOffer offer,
                                                  rendezvous::OfferStore offer_store);

}  // namespace lockstep::launch
