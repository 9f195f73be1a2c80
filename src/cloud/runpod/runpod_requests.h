// What RunPod is asked. Pods are made by GraphQL, which alone has spot and a time by which the
// provider itself ends a pod; all else is REST, version 2. Pure.
#pragma once

#include "cloud/provider.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep::cloud::runpod {

inline constexpr std::string_view kGraphql = "/graphql";
inline constexpr std::string_view kPods = "/v2/pods";
inline constexpr int kLeastDisk = 50;                       // GB: the image and what a job needs
inline constexpr std::size_t kMostStartScript = 64U << 10;  // goes into a variable of the container

// Names of variables in which a pod carries what others have tags for.
inline constexpr const char* kClusterVariable = "LS_TAG_CLUSTER";
inline constexpr const char* kEndsVariable = "LS_TAG_ENDS";
inline constexpr const char* kSpotVariable = "LS_TAG_SPOT";

struct PodTerms {
  std::string name;
  std::int64_t ends_ms = 0;        // Unix time, by which RunPod ends it; 0: none
  std::optional<Micros> bid = {};  // per GPU and hour: spot
};

std::string catalog_target(int gpus);  // with stock for pods of so many GPUs
std::string pod_target(std::string_view id);
std::string launch_body(const LaunchSpec& spec, const PodTerms& terms);
// Spot's least bid and the price on demand, per GPU; type empty: of all.
std::string bids_body(int gpus, std::string_view type);
std::string account_body();

}  // namespace lockstep::cloud::runpod
