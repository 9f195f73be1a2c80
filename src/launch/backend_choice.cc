#include "launch/backend_choice.h"

#include "launch/backend_row.h"
#include "rendezvous/solo.h"

#include <utility>

namespace lockstep::launch {

std::unique_ptr<rendezvous::Backend> make_backend(io::Loop& loop, const LaunchConfig& config,
                                                  rendezvous::NodeOffer offer,
                                                  rendezvous::OfferStore offer_store) {
  if (!config.alone())
    return config.backend->make(config, {loop, std::move(offer), std::move(offer_store)});
  // A private store serves this node's workers only, so loopback is enough.
  const std::string addr =
      config.private_store ? config.local_addr.value_or("127.0.0.1") : config.master_addr;
  return std::make_unique<rendezvous::Solo>(loop, std::move(offer), addr, std::move(offer_store));
}

}  // namespace lockstep::launch
