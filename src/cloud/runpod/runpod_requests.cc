#include "cloud/runpod/runpod_requests.h"

#include "cloud/time_text.h"
#include "cloud/user_data.h"
#include "codec/base64.h"
#include "codec/json.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::cloud::runpod {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kImage = "runpod/pytorch:1.0.2-cu1281-torch280-ubuntu2404";
// The last with kernels for GPUs older than Turing.
constexpr std::string_view kOldImage = "runpod/pytorch:2.4.0-py3.11-cuda12.4.1-devel-ubuntu22.04";

std::string own_image(const LaunchSpec& spec) {
  if (!spec.image.empty()) return spec.image;
  const Gpu* gpu = find_gpu(spec.offer.gpu);
  return std::string(gpu != nullptr && !gpu->open_kernel_module ? kOldImage : kImage);
}

// A host whose driver is older than the image's CUDA would never start it.
Json cuda_versions(const LaunchSpec& spec) {
  if (!spec.image.empty()) return Json::array();
  if (own_image(spec) == kOldImage) return {"12.4", "12.5", "12.6", "12.7", "12.8", "12.9", "13.0"};
  return {"12.8", "12.9", "13.0"};
}

Json variables_of(const LaunchSpec& spec) {
  Json list = Json::array();
  const auto add = [&](std::string_view key, const std::string& value) {
    list.push_back({{"key", key}, {"value", value}});
  };
  // With it in the request the account's own keys are left out.
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
  Json input = {{"cloudType", "SECURE"},
                {"gpuTypeId", spec.offer.type},
                {"gpuCount", spec.offer.gpus},
                {"name", terms.name},
                {"imageName", own_image(spec)},
                {"dockerArgs", kStartCommand},
                {"containerDiskInGb", std::max(spec.disk_gb, kLeastDisk)},
                {"volumeInGb", 0},
                {"ports", "22/tcp"},
                {"supportPublicIp", true},
                {"startSsh", true},
                {"env", variables_of(spec)}};
  if (const Json versions = cuda_versions(spec); !versions.empty())
    input["allowedCudaVersions"] = versions;
  if (!spec.offer.region.empty()) input["dataCenterId"] = spec.offer.region;
  if (terms.ends_ms > 0) input["terminateAfter"] = iso_time(terms.ends_ms);
  if (terms.bid) input["bidPerGpu"] = static_cast<double>(*terms.bid) / kDollar;
  return codec::print_json(
      Json{{"query", fmt::format("mutation($input: {}!) {{ {}(input: $input) {{ id costPerHr }} }}",
                                 type, field)},
           {"variables", {{"input", input}}}});
}

std::string bids_body(int gpus, std::string_view type) {
  // A text of GraphQL is written as one of JSON.
  const std::string which =
      type.empty() ? "" : fmt::format("(input: {{id: {}}})", codec::print_json(Json(type)));
  return codec::print_json(
      Json{{"query", fmt::format("query {{ gpuTypes{} {{ id lowestPrice(input: {{gpuCount: {}, "
                                 "secureCloud: true}}) {{ minimumBidPrice uninterruptablePrice }} "
                                 "}} }}",
                                 which, gpus)}});
}

std::string account_body() {
  return codec::print_json(
      Json{{"query", "query { myself { id email clientBalance currentSpendPerHr } }"}});
}

}  // namespace lockstep::cloud::runpod
