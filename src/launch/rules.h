// The rules behind make_launch_config(), one per subject: each reads raw and facts, fills its part
// of the config. Order matters where said.
#pragma once

#include "launch/facts.h"
#include "launch/launch_config.h"
#include "launch/raw_options.h"
#include "launch/scheduler_rule.h"

#include <string>
#include <string_view>

namespace lockstep::launch {

// What the scheduler has for whatever else was not given; nullopt where it is not asked.
Result<std::optional<Placement>> apply_nodes(const RawOptions& raw, const Facts& facts,
                                             LaunchConfig& config);
Status apply_rendezvous(const RawOptions& raw, const Facts& facts,
                        const std::optional<Placement>& placement,
                        LaunchConfig& config);  // after nodes
Status apply_rdzv_conf(const RawOptions& raw, const Facts& facts,
                       LaunchConfig& config);  // rendezvous' own part, after the backend
Status apply_agreement(const RawOptions& raw, const Facts& facts,
                       LaunchConfig& config);  // after rendezvous
// A file with a secret: none that others may use; one byte more than `limit` tells that it is
// longer.
Result<std::string> read_secret(const std::string& path, std::size_t limit, std::string_view option,
                                const Facts& facts);
Status apply_workers(const RawOptions& raw, const Facts& facts, LaunchConfig& config);
Status apply_supervision(const RawOptions& raw, const Facts& facts, LaunchConfig& config);
void apply_watch(const Facts& facts, LaunchConfig& config);
Status apply_placement(const RawOptions& raw, const Facts& facts,
                       LaunchConfig& config);  // after workers
Status apply_logs(const RawOptions& raw, const Facts& facts,
                  LaunchConfig& config);  // after rendezvous and workers
Status apply_command(const RawOptions& raw, const Facts& facts,
                     LaunchConfig& config);  // after workers

}  // namespace lockstep::launch
