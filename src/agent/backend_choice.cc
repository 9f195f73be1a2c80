#include "agent/backend_choice.h"

#include "rendezvous/solo.h"

#include <fmt/core.h>

#include <utility>

namespace lockstep::agent {

Result<std::unique_ptr<rendezvous::Backend>> make_backend(io::Loop& loop,
                                                          const LaunchConfig& config,
                                                          rendezvous::NodeOffer offer,
                                                          rendezvous::OfferStore offer_store) {
  if (config.max_nodes == 1) {
    const std::string addr =
        config.private_store ? config.local_addr.value_or("127.0.0.1") : config.master_addr;
    return std::make_unique<rendezvous::Solo>(loop, std::move(offer), addr, std::move(offer_store));
  }
  return fail(
      Errc::unavailable,
      fmt::format("several nodes over the backend '{}' are not there yet", config.rdzv_backend));
}

}  // namespace lockstep::agent
