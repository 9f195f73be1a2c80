// What is asked of Compute Engine, as text: pure. Numbers of 64 bits are texts, as Google's own
// clients write them.
#pragma once

#include "cloud/provider.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud::gcp {

inline constexpr std::string_view kUser = "ubuntu";  // of all images that are chosen here
inline constexpr std::string_view kNetwork = "global/networks/default";
inline constexpr std::int64_t kMostRun =
    120LL * 86'400;  // seconds of maxRunDuration, as documented

struct LaunchWords {
  std::string image;  // "projects/P/global/images/NAME"
  int disk_gb = 0;
};

// "ls-INTENT-ATTEMPT-NODE": the same for the same attempt, so that a second launch finds the first.
std::string machine_name(const LaunchSpec& spec, int node);
int node_of_name(std::string_view name);  // -1: no name of ours
// The requestId of an attempt: a UUID that is the same for the same attempt.
std::string request_id(const LaunchSpec& spec);
// That of the launch which has made the machine of this name; "": no name of ours.
std::string request_id_of_name(std::string_view name);

// Of one machine, for instances.insert.
std::string insert_body(const LaunchSpec& spec, const LaunchWords& words);
// Of a gang, all or none, for instances.bulkInsert.
std::string bulk_body(const LaunchSpec& spec, const LaunchWords& words);

// Each installation has a rule and a tag of its own, and opens its own machines only.
std::string firewall_name(std::string_view owner);
std::string machine_tag(std::string_view owner);
std::string firewall_body(std::string_view owner, const std::vector<std::string>& cidrs);
std::string firewall_patch(const std::vector<std::string>& cidrs);

// A label takes small letters, digits, '-' and '_', at most 63 of them.
std::string label_of(std::string_view text);
// Labels have no room for "2026-11-23T06:00:00Z": "2026-11-23t06-00-00z".
std::string time_label(std::int64_t unix_ms);
std::int64_t parse_time_label(std::string_view label);  // 0: none

}  // namespace lockstep::cloud::gcp
