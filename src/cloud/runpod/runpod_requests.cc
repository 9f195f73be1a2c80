#include "cloud/runpod/runpod_requests.h"

#include "cloud/json_words.h"
#include "cloud/time_text.h"
#include "cloud/user_data.h"
#include "codec/base64.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud::runpod {
namespace {

constexpr std::string_view kImage = "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404";
// The last image with kernels for GPUs older than Turing.
constexpr std::string_view kOldImage = "runpod/pytorch:2.4.0-py3.11-cuda12.4.1-devel-ubuntu22.04";

std::string own_image(const LaunchSpec& spec) {
  if (!spec.image.empty()) return spec.image;
  const Gpu* gpu = find_gpu(spec.offer.gpu);
  return std::string(gpu != nullptr && !gpu->open_kernel_module ? kOldImage : kImage);
}

// Ask for a host with a new enough driver. With a driver older than the image's CUDA, the container
// never starts.
std::string_view cuda_versions(const LaunchSpec& spec) {
  if (!spec.image.empty()) return "";
  return own_image(spec) == kOldImage
             ? R"("allowedCudaVersions":["12.4","12.5","12.6","12.7","12.8","12.9","13.0"],)"
             : R"("allowedCudaVersions":["12.8","12.9","13.0"],)";
}

std::string variables_of(const LaunchSpec& spec) {
  std::string list;
  const auto add = [&](std::string_view key, std::string_view value) {
    list += fmt::format(R"({}{{"key":"{}","value":{}}})", list.empty() ? "" : ",", key,
                        json_text(value));
  };
  // A public key in the request replaces the keys of the account.
  add("PUBLIC_KEY", spec.public_key);
  add(kStartVariable, codec::base64_encode(spec.user_data));
  add(kClusterVariable, spec.cluster.substr(0, 128));
  if (spec.ends_ms > 0) add(kEndsVariable, iso_time(spec.ends_ms));
  if (spec.offer.spot) add(kSpotVariable, "1");
  return list;
}

}  // namespace

std::string catalog_target(int gpus) {
  return fmt::format("/v2/catalog/gpus?include=AVAILABILITY&product=POD&count={}&cloud=SECURE",
                     gpus);
}

std::string pod_target(std::string_view id) {
  return fmt::format("{}/{}", kPods, id);
}

std::string launch_body(const LaunchSpec& spec, const PodTerms& terms) {
  const std::string_view field = terms.bid ? "podRentInterruptable" : "podFindAndDeployOnDemand";
  const std::string_view type =
      terms.bid ? "PodRentInterruptableInput" : "PodFindAndDeployOnDemandInput";
  std::string more(cuda_versions(spec));
  if (!spec.offer.region.empty())
    more += fmt::format(R"("dataCenterId":{},)", json_text(spec.offer.region));
  if (terms.ends_ms > 0) more += fmt::format(R"("terminateAfter":"{}",)", iso_time(terms.ends_ms));
  if (terms.bid)
    more += fmt::format(R"("bidPerGpu":{}.{:06},)", *terms.bid / kDollar, *terms.bid % kDollar);
  return fmt::format(
      R"({{"query":"mutation($input: {}!) {{ {}(input: $input) {{ id costPerHr }} }}",)"
      R"("variables":{{"input":{{"cloudType":"SECURE","gpuTypeId":{},"gpuCount":{},"name":{},)"
      R"("imageName":{},"dockerArgs":{},"containerDiskInGb":{},"volumeInGb":0,"ports":"22/tcp",)"
      R"("supportPublicIp":true,"startSsh":true,{}"env":[{}]}}}}}})",
      type, field, json_text(spec.offer.type), spec.offer.gpus, json_text(terms.name),
      json_text(own_image(spec)), json_text(kStartCommand), std::max(spec.disk_gb, kLeastDisk),
      more, variables_of(spec));
}

std::string bids_body(int gpus, std::string_view type) {
  // GraphQL writes a text as JSON does.
  const std::string which = type.empty() ? "" : fmt::format("(input: {{id: {}}})", json_text(type));
  const std::string query = fmt::format(
      "query {{ gpuTypes{} {{ id lowestPrice(input: {{gpuCount: {}, secureCloud: true}}) "
      "{{ minimumBidPrice uninterruptablePrice }} }} }}",
      which, gpus);
  return fmt::format(R"({{"query":{}}})", json_text(query));
}

std::string account_body() {
  return R"({"query":"query { myself { id email clientBalance currentSpendPerHr } }"})";
}

}  // namespace lockstep::cloud::runpod
