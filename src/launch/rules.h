// The rules of make_launch_config(), one per subject. Each rule reads raw options and facts and
// fills a part of the configuration. "after X": reads members filled by rule X.
#pragma once

#include "launch/facts.h"
#include "launch/launch_config.h"
#include "launch/raw_options.h"
#include "launch/scheduler_rule.h"

#include <string>
#include <string_view>

namespace lockstep::launch {

// Returns the scheduler's placement for later rules; nullopt: the scheduler is not asked.
Result<std::optional<Placement>> apply_nodes(const RawOptions& raw, const Facts& facts,
                                             LaunchConfig& config);
Status apply_rendezvous(const RawOptions& raw, const Facts& facts,
                        const std::optional<Placement>& placement,
                        LaunchConfig& config);  // after nodes
Status apply_rdzv_conf(const RawOptions& raw, const Facts& facts,
                       LaunchConfig& config);  // rendezvous' own part, after the backend
Status apply_agreement(const RawOptions& raw, const Facts& facts,
                       LaunchConfig& config);  // after rendezvous
// Reads a file with a secret. Refuses a file accessible to other users. Returns at most `limit` + 1
// bytes, so the caller can detect a file that is too long.
Result<std::string> read_secret(const std::string& path, std::size_t limit, std::string_view option,
                                const Facts& facts);
Status apply_workers(const RawOptions& raw, const Facts& facts, LaunchConfig& config);
Status apply_supervision(const RawOptions& raw, const Facts& facts, LaunchConfig& config);
void apply_watch(const Facts& facts, LaunchConfig& config);
Status apply_hang(const RawOptions& raw, LaunchConfig& config);  // after supervision
Status apply_events(const RawOptions& raw, LaunchConfig& config);
Status apply_page(const RawOptions& raw, LaunchConfig& config);
Status apply_placement(const RawOptions& raw, const Facts& facts,
                       LaunchConfig& config);  // after workers
Status apply_logs(const RawOptions& raw, const Facts& facts,
                  LaunchConfig& config);  // after rendezvous and workers
void apply_recorder(const RawOptions& raw, const Facts& facts,
                    LaunchConfig& config);  // after hang and logs
void apply_profile(const RawOptions& raw, const Facts& facts, LaunchConfig& config);
Status apply_command(const RawOptions& raw, const Facts& facts,
                     LaunchConfig& config);  // after workers

}  // namespace lockstep::launch
