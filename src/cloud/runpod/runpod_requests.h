// Bodies and targets of calls to RunPod. Only GraphQL has spot and a time at which RunPod
// terminates a pod, so launches use GraphQL. All other calls use REST, version 2. Pure.
#pragma once

#include "cloud/provider.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cloud::runpod {

inline constexpr std::string_view kGraphql = "/graphql";
inline constexpr std::string_view kPods = "/v2/pods";
inline constexpr int kLeastDisk = 50;  // GB: for the image and a job's files
inline constexpr std::size_t kMostStartScript =
    64U << 10;  // the script is in a variable of the container

// Variables in place of tags, which pods do not have.
inline constexpr const char* kClusterVariable = "LS_TAG_CLUSTER";
inline constexpr const char* kEndsVariable = "LS_TAG_ENDS";
inline constexpr const char* kSpotVariable = "LS_TAG_SPOT";

struct PodTerms {
  std::string name;
  std::int64_t ends_ms = 0;        // Unix time at which RunPod ends the pod; 0: never
  std::optional<Micros> bid = {};  // per GPU and hour: spot
};

std::string catalog_target(int gpus);  // with the stock of pods with that many GPUs
std::string pod_target(std::string_view id);
std::string launch_body(const LaunchSpec& spec, const PodTerms& terms);
// Asks for the lowest spot bid and the on-demand price per GPU. type empty: for all types.
std::string bids_body(int gpus, std::string_view type);
std::string account_body();

}  // namespace lockstep::cloud::runpod
