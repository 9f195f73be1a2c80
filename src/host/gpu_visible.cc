// The rules of CUDA, HIP and Level Zero for choosing GPUs.
#include "host/gpu_visible.h"

#include "base/text.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace lockstep::host {
namespace {

// Parses an entry like torch, which copies C's strtoul(): leading digits count ("1abc" is 1), and
// an entry without digits is -1.
std::int64_t leading_number(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size()) {
    const char c = text[end];
    if (!(c >= '0' && c <= '9') && !(end == 0 && (c == '+' || c == '-'))) break;
    ++end;
  }
  return parse_int(text.substr(0, end)).value_or(-1);
}

// Returns the entries up to the first invalid one. Empty if an entry is repeated.
std::vector<std::int64_t> numbers_of(const std::string& list) {
  std::vector<std::int64_t> numbers;
  for (const auto& entry : split(list, ',')) {
    const std::int64_t number = leading_number(strip(entry));
    if (number < 0) break;
    if (std::find(numbers.begin(), numbers.end(), number) != numbers.end()) return {};
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<std::string> entries_with(const std::string& list, std::string_view prefix) {
  std::vector<std::string> entries;
  for (const auto& entry : split(list, ',')) {
    const std::string bare(strip(entry));
    if (!bare.starts_with(prefix)) break;
    if (std::find(entries.begin(), entries.end(), bare) != entries.end()) return {};
    entries.push_back(bare);
  }
  return entries;
}

std::vector<Gpu> by_number(const std::vector<Gpu>& gpus, const std::string& list) {
  std::vector<Gpu> chosen;
  for (const std::int64_t number : numbers_of(list)) {
    // A number beyond the last GPU ends the list, as in CUDA.
    if (number >= static_cast<std::int64_t>(gpus.size())) break;
    chosen.push_back(gpus[static_cast<std::size_t>(number)]);
  }
  return chosen;
}

std::vector<Gpu> by_uuid(const std::vector<Gpu>& gpus, const std::string& list) {
  std::vector<Gpu> chosen;
  for (const auto& prefix : entries_with(list, "GPU-")) {
    const auto matches = [&](const Gpu& gpu) { return gpu.uuid.starts_with(prefix); };
    // CUDA accepts a prefix of a UUID only if a single GPU matches.
    if (std::count_if(gpus.begin(), gpus.end(), matches) != 1) break;
    const Gpu& match = *std::find_if(gpus.begin(), gpus.end(), matches);
    const auto same = [&](const Gpu& gpu) { return gpu.index == match.index; };
    // Two prefixes may name the same GPU: a repetition selects none.
    if (std::any_of(chosen.begin(), chosen.end(), same)) return {};
    chosen.push_back(match);
  }
  return chosen;
}

// Handles "MIG-<uuid>" and the old "MIG-GPU-<uuid>/<instance>/<instance>". The driver's files do
// not name the new ones, so an unknown name is taken for an instance of the first split GPU.
std::vector<Gpu> by_mig(const std::vector<Gpu>& gpus, const std::string& list) {
  const auto entries = entries_with(list, "MIG-");
  if (entries.empty()) return {};
  const std::string& name = entries.front();
  bool names_known = false;
  for (const Gpu& gpu : gpus) {
    names_known = names_known || !gpu.mig_uuids.empty();
    for (const auto& uuid : gpu.mig_uuids)
      if (uuid.starts_with(name)) return {gpu};
    if (gpu.mig_instances > 0 && !gpu.uuid.empty() && name.starts_with("MIG-" + gpu.uuid + "/"))
      return {gpu};
  }
  if (names_known || name.starts_with("MIG-GPU-")) return {};
  for (const Gpu& gpu : gpus)
    if (gpu.mig_instances > 0) return {gpu};
  return {};
}

// See MIG in gpu_visible.h.
std::vector<Gpu> one_if_split(std::vector<Gpu> chosen) {
  const auto split_gpu = std::find_if(chosen.begin(), chosen.end(),
                                      [](const Gpu& gpu) { return gpu.mig_instances > 0; });
  if (split_gpu == chosen.end()) return chosen;
  return {*split_gpu};
}

}  // namespace

std::vector<Gpu> choose_nvidia(const std::vector<Gpu>& gpus,
                               const std::optional<std::string>& cuda_visible_devices) {
  if (!cuda_visible_devices) return one_if_split(gpus);
  if (cuda_visible_devices->starts_with("MIG-")) return by_mig(gpus, *cuda_visible_devices);
  if (cuda_visible_devices->starts_with("GPU-"))
    return one_if_split(by_uuid(gpus, *cuda_visible_devices));
  return one_if_split(by_number(gpus, *cuda_visible_devices));
}

std::vector<Gpu> choose_amd(const std::vector<Gpu>& gpus, const GpuEnvironment& env) {
  std::vector<Gpu> chosen = gpus;
  if (const auto& list = env.rocr_visible_devices)
    // HIP applies its own list to the GPUs that ROCR has left.
    chosen = list->starts_with("GPU-") ? by_uuid(chosen, *list) : by_number(chosen, *list);
  const auto& list = env.hip_visible_devices ? env.hip_visible_devices : env.cuda_visible_devices;
  return list ? by_number(chosen, *list) : chosen;
}

std::vector<Gpu> choose_intel(const std::vector<Gpu>& gpus,
                              const std::optional<std::string>& ze_affinity_mask) {
  // Unlike CUDA, an empty mask means all GPUs.
  if (!ze_affinity_mask || ze_affinity_mask->empty()) return gpus;
  std::vector<std::int64_t> wanted;
  for (const auto& entry : split(*ze_affinity_mask, ',')) {
    const std::int64_t number = leading_number(strip(entry));
    if (number >= 0) wanted.push_back(number);
  }
  std::vector<Gpu> chosen;  // the mask does not reorder
  for (const Gpu& gpu : gpus)
    if (std::find(wanted.begin(), wanted.end(), gpu.index) != wanted.end()) chosen.push_back(gpu);
  return chosen;
}

}  // namespace lockstep::host
