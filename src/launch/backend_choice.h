// Which rendezvous backend a configuration means, with its settings.
#pragma once

#include "base/error.h"
#include "io/loop.h"
#include "launch/launch_config.h"
#include "rendezvous/backend.h"

#include <memory>

namespace lockstep::launch {

Result<std::unique_ptr<rendezvous::Backend>> make_backend(io::Loop& loop,
                                                          const LaunchConfig& config,
                                                          rendezvous::NodeOffer offer,
                                                          rendezvous::OfferStore offer_store);

}  // namespace lockstep::launch
