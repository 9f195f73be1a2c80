// Bodies and names of calls to Compute Engine. 64-bit numbers are texts, as Google's own clients
// write them. Pure.
#pragma once

#include "cloud/provider.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::gcp {

inline constexpr std::string_view kUser = "ubuntu";  // login name on all images that we choose
inline constexpr std::string_view kNetwork = "global/networks/default";
inline constexpr std::int64_t kMostRun =
    120LL * 86'400;  // seconds of maxRunDuration, as documented

struct LaunchWords {
  std::string image;  // "projects/P/global/images/NAME"
  int disk_gb = 0;
};

// Returns "ls-INTENT-ATTEMPT-NODE". The name is the same for the same attempt, so a second launch
// meets the first machine.
std::string machine_name(const LaunchSpec& spec, int node);
int node_of_name(std::string_view name);  // -1: not our name
// Returns the requestId of an attempt, a UUID that is always the same for the same attempt.
std::string request_id(const LaunchSpec& spec);
// Returns the requestId of the launch that made the machine of this name; "": not our name.
std::string request_id_of_name(std::string_view name);

// The body of instances.insert, for one machine.
std::string insert_body(const LaunchSpec& spec, const LaunchWords& words);
// The body of instances.bulkInsert, for a gang, all or none.
std::string bulk_body(const LaunchSpec& spec, const LaunchWords& words);

// Return the names of the firewall rule and of the tag. Both contain the owner, so a rule opens
// only machines of one installation.
std::string firewall_name(std::string_view owner);
std::string machine_tag(std::string_view owner);
std::string firewall_body(std::string_view owner, const std::vector<std::string>& cidrs);
std::string firewall_patch(const std::vector<std::string>& cidrs);

// Makes a label: at most 63 small letters, digits, '-' and '_'.
std::string label_of(std::string_view text);
// Labels allow no colons or capitals: "2026-11-23T06:00:00Z" becomes "2026-11-23t06-00-00z".
std::string time_label(std::int64_t unix_ms);
std::int64_t parse_time_label(std::string_view label);  // 0: none

}  // namespace lockstep::cloud::gcp
