#include "rent/on_demand.h"

#include "base/environment.h"
#include "cloud/table/provider_table.h"
#include "io/own_folders.h"

#include <optional>
#include <string_view>

namespace lockstep::rent {
namespace {

std::optional<std::string> env_of_process(std::string_view name) {
  auto value = env_variable(name);
  return value && value->empty() ? std::nullopt : value;
}

cloud::Ground process_ground() {
  return {.env = env_of_process,
          .home = io::home_folder(),
          .cache = io::cache_folder(),
          .state = io::state_folder()};
}

}  // namespace

OnDemand::OnDemand(Parts parts)
    : parts_(std::move(parts)),
      locks_(parts_.ground.state),
      guards_(parts_.ground.owner, parts_.signals.fd()) {}

Result<std::unique_ptr<OnDemand>> OnDemand::open() {
  cloud::Ground ground = process_ground();
  LOCKSTEP_TRY_ASSIGN(auto journal, cloud::Journal::open(ground.state));
  LOCKSTEP_TRY_ASSIGN(ground.owner, journal.owner());
  ProviderSet providers(cloud::table::make_providers(ground));
  LOCKSTEP_TRY_ASSIGN(StopSignals signals, StopSignals::open());
  LOCKSTEP_TRY_ASSIGN(auto web, cloud::open_web({.stop_fd = signals.fd()}));
  LOCKSTEP_TRY_ASSIGN(SideWeb side, SideWeb::open(signals));
  return std::make_unique<OnDemand>(Parts{.ground = std::move(ground),
                                          .journal = std::move(journal),
                                          .providers = std::move(providers),
                                          .signals = std::move(signals),
                                          .web = std::move(web),
                                          .side = std::move(side)});
}

}  // namespace lockstep::rent
