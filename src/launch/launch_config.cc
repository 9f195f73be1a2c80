#include "launch/launch_config.h"

#include "launch/rules.h"

namespace lockstep::launch {

Result<LaunchConfig> make_launch_config(const RawOptions& raw, const Facts& facts) {
  LaunchConfig config;
  for (const auto& [name, variable] : raw.given)
    config.origins[name] = {variable.empty() ? Origin::Kind::option : Origin::Kind::variable,
                            variable};
  // The order matters: see the "after" notes in rules.h.
  LOCKSTEP_TRY_ASSIGN(const auto placement, apply_nodes(raw, facts, config));
  if (placement) config.scheduler_hosts = placement->hosts;
  LOCKSTEP_TRY(apply_rendezvous(raw, facts, placement, config));
  LOCKSTEP_TRY(apply_agreement(raw, facts, config));
  LOCKSTEP_TRY(apply_workers(raw, facts, config));
  LOCKSTEP_TRY(apply_supervision(raw, facts, config));
  apply_watch(facts, config);
  LOCKSTEP_TRY(apply_hang(raw, config));
  LOCKSTEP_TRY(apply_events(raw, config));
  LOCKSTEP_TRY(apply_page(raw, config));
  LOCKSTEP_TRY(apply_placement(raw, facts, config));
  LOCKSTEP_TRY(apply_logs(raw, facts, config));
  apply_recorder(raw, facts, config);
  apply_profile(raw, facts, config);
  LOCKSTEP_TRY(apply_command(raw, facts, config));
  if (raw.container)
    config.container = {*raw.container, raw.container_runtime, raw.container_runtime_why};
  return config;
}

}  // namespace lockstep::launch
