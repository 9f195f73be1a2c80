#include "cloud/gpu.h"

#include "base/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace lockstep::cloud {
namespace {

constexpr std::int64_t kMostGpus = 64;  // of one machine

// Returns a name for comparison, without case, spaces, dashes, underscores and brackets.
std::string bare_name(std::string_view text) {
  std::string bare;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      bare += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return bare;
}

bool is_called(const Gpu& gpu, const std::string& bare) {
  return bare_name(gpu.name) == bare ||
         std::any_of(gpu.aliases.begin(), gpu.aliases.end(),
                     [&](const std::string& alias) { return bare_name(alias) == bare; });
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const Gpu& gpu : gpu_table())
    for (const std::string& name : {gpu.family, gpu.name})
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

Failure no_such_gpu(std::string_view given) {
  const std::vector<std::string> names = all_names();
  std::vector<std::string> near;
  const std::string wanted = bare_name(given);
  for (const std::string& name : names) {
    const std::string bare = bare_name(name);
    // A single letter is the start of too many names.
    if (wanted.size() > 1 && (bare.find(wanted) == 0 || wanted.find(bare) == 0))
      near.push_back(name);
  }
  if (near.empty())
    if (const auto meant = did_you_mean(to_upper(given), names)) near.push_back(*meant);
  return fail(Errc::invalid_input, fmt::format("no GPU is called '{}'", printable(given, 60)),
              near.empty() ? "known are " + join(names, ", ") : "near it: " + join(near, ", "));
}

}  // namespace

const Gpu* find_gpu(std::string_view name) {
  const std::string bare = bare_name(name);
  for (const Gpu& gpu : gpu_table())
    if (is_called(gpu, bare)) return &gpu;
  return nullptr;
}

const Gpu* gpu_described(std::string_view description, int memory_gb) {
  if (const Gpu* exact = find_gpu(description)) return exact;
  std::string bare = bare_name(description);
  // Some providers write "NVIDIA" before the name.
  if (bare.rfind("nvidia", 0) == 0) bare.erase(0, 6);
  if (const Gpu* exact = find_gpu(bare)) return exact;
  // Try family and memory, if both together mean only one GPU. Providers state memory differently
  // (L4: 24 or 22 GB), so allow an eighth of difference.
  const Gpu* found = nullptr;
  for (const Gpu& gpu : gpu_table()) {
    if (bare_name(gpu.family) != bare) continue;
    if (memory_gb != 0 && std::abs(gpu.memory_gb - memory_gb) > gpu.memory_gb / 8) continue;
    if (found != nullptr) return nullptr;
    found = &gpu;
  }
  return found;
}

bool GpuWish::admits(std::string_view gpu, int gpus) const {
  if (none) return gpus == 0;
  if (kinds.empty()) return gpus > 0;
  if (at_least ? gpus < count : gpus != count) return false;
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](const Gpu* kind) { return kind->name == gpu; });
}

std::string GpuWish::text() const {
  if (none) return std::string(kNoGpus);
  return count == 0 ? name : fmt::format("{}:{}", name, count);
}

Result<GpuWish> parse_gpu_wish(std::string_view text) {
  GpuWish wish;
  std::string_view name = text;
  if (const std::size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    name = text.substr(0, colon);
    const auto count = parse_int(text.substr(colon + 1));
    if (!count || *count < 1 || *count > kMostGpus)
      return fail(Errc::invalid_input,
                  fmt::format("the number of GPUs of a machine must be from 1 to {} (got '{}')",
                              kMostGpus, printable(text.substr(colon + 1), 40)),
                  "write GPU:COUNT, as A100:8");
    wish.count = static_cast<int>(*count);
  }
  const std::string bare = bare_name(name);
  for (const Gpu& gpu : gpu_table()) {
    if (bare_name(gpu.family) != bare) continue;
    // A family such as A100 admits all its kinds, whatever their memory.
    wish.name = gpu.family;
    wish.kinds.push_back(&gpu);
  }
  if (!wish.kinds.empty()) return wish;
  const Gpu* one = find_gpu(name);
  if (one == nullptr) return no_such_gpu(name);
  wish.name = one->name;
  wish.kinds = {one};
  return wish;
}

}  // namespace lockstep::cloud
