#include "agent/node.h"

#include "host/identity.h"

#include <unistd.h>

namespace lockstep::agent {

Node node_of(const launch::LaunchConfig& config) {
  Node node{.config = config,
            .environment = environment_of(environ),
            .host_name = host::hostname(),
            .name = host::node_name()};
  // Secrets of the agents, which workers must not see.
  node.environment.erase("LOCKSTEP_RDZV_TOKEN");
  node.environment.erase("LOCKSTEP_NOTIFY");
  return node;
}

rendezvous::NodeOffer offer_of(const Node& node) {
  const launch::LaunchConfig& config = node.config;
  rendezvous::NodeOffer offer;
  offer.role = config.role;
  offer.local_world_size = config.nproc;
  offer.host = node.name;
  if (config.node_rank_given) offer.node_rank = config.node_rank;
  offer.max_restarts = config.max_restarts;
  offer.replacement = config.replacement;
  offer.launched = {.name = rendezvous::launched_name(config.entrypoint),
                    .arguments = config.entrypoint_arguments,
                    .any = config.conf.text("entrypoint") == "any",
                    .version = LOCKSTEP_VERSION};
  return offer;
}

}  // namespace lockstep::agent
