// The row of `c10d`: torchrun's rendezvous over a TCPStore hosted by an agent, or over a file seen
// by all agents.
#include "launch/backends/concat.h"
#include "launch/backends/dynamic_settings.h"
#include "launch/backends/rows.h"
#include "launch/launch_config.h"
#include "rendezvous/dynamic/c10d_place.h"
#include "rendezvous/dynamic/file_place.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::launch {
namespace {

constexpr auto kKeys = concat(
    kDynamicKeys,
    std::array{
        ConfKey{.name = "is_host", .type = ConfKey::Type::flag},
        ConfKey{.name = "store_type", .type = ConfKey::Type::choice, .choices = {"tcp", "file"}}});

bool meets_in_file(const ConfValues& conf) {
  return conf.text("store_type") == "file";
}

std::unique_ptr<rendezvous::Backend> make_over_file(const LaunchConfig& config,
                                                    BackendParts parts) {
  rendezvous::dynamic::FilePlaceSettings settings{
      .path = config.rdzv_endpoint,
      .run_id = config.run_id,
      .local_addr = config.local_addr,
      .read_timeout = config.conf.seconds("read_timeout")};
  auto place = std::make_unique<rendezvous::dynamic::FilePlace>(parts.loop, std::move(settings));
  return make_dynamic(config, std::move(place), std::move(parts));
}

std::unique_ptr<rendezvous::Backend> make(const LaunchConfig& config, BackendParts parts) {
  if (meets_in_file(config.conf)) return make_over_file(config, std::move(parts));
  rendezvous::dynamic::C10dPlaceSettings settings;
  settings.endpoint = config.rdzv_endpoints.at(0);
  settings.run_id = config.run_id;
  settings.is_host = config.conf.flag("is_host");
  settings.local_addr = config.local_addr;
  settings.read_timeout = config.conf.seconds("read_timeout");
  // torchrun's connection uses read_timeout only. A user who sets a shorter join_timeout means the
  // whole wait.
  settings.connect_timeout =
      std::min(config.conf.seconds("read_timeout"), config.conf.seconds("join_timeout"));
  auto place = std::make_unique<rendezvous::dynamic::C10dPlace>(parts.loop, std::move(settings));
  return make_dynamic(config, std::move(place), std::move(parts));
}

std::string without_host(const LaunchConfig& config) {
  if (meets_in_file(config.conf)) return "no node hosts: the rendezvous is in a file";
  return fmt::format("the job ends with the agent at {}: torchrun's store stays there",
                     config.rdzv_endpoints.at(0).host);
}

}  // namespace

constinit const BackendRow kC10d = {
    .name = "c10d",
    .summary = "torchrun's, at a store that one of the agents hosts, or in a file",
    .default_port = 29400,
    .beside_torchrun = true,
    .orders = kDynamicOrders,
    .keys = kKeys,
    .meets_in_file = meets_in_file,
    .without_host = without_host,
    .make = make,
};

}  // namespace lockstep::launch
