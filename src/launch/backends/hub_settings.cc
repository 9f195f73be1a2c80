#include "launch/backends/hub_settings.h"

#include "launch/launch_config.h"

#include <algorithm>
#include <utility>

namespace lockstep::launch {

rendezvous::hub::HubSettings hub_settings(const LaunchConfig& config, BackendParts parts) {
  rendezvous::hub::HubSettings settings;
  settings.run_id = config.run_id;
  settings.local_addr = config.local_addr;
  settings.token = config.rdzv_token;
  settings.min_nodes = static_cast<std::size_t>(config.min_nodes);
  settings.max_nodes = static_cast<std::size_t>(config.max_nodes);
  settings.has_spares = config.spares > 0;
  settings.order = config.rank_order;
  settings.expected = config.scheduler_hosts;
  settings.offer = std::move(parts.offer);
  settings.offer_store = std::move(parts.offer_store);
  settings.join_timeout = config.conf.seconds("join_timeout");
  // The host often starts late, so connecting has a limit of its own only if the user gave one.
  settings.connect_timeout =
      config.conf.given("read_timeout")
          ? std::min(config.conf.seconds("join_timeout"), config.conf.seconds("read_timeout"))
          : config.conf.seconds("join_timeout");
  settings.last_call_timeout = config.conf.seconds("last_call_timeout");
  settings.close_timeout = config.conf.seconds("close_timeout");
  settings.keep_alive_interval = config.conf.seconds("keep_alive_interval");
  settings.keep_alive_max_attempt = static_cast<int>(config.conf.number("keep_alive_max_attempt"));
  return settings;
}

}  // namespace lockstep::launch
