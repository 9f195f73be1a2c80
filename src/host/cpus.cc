// Parses and prints the kernel's CPU lists.
#include "host/cpus.h"

#include "base/text.h"

#include <fmt/core.h>

#include <errno.h>
#include <sched.h>

#include <algorithm>
#include <memory>
#include <optional>

namespace lockstep::host {
namespace {

std::optional<int> cpu_number(std::string_view text) {
  const auto value = parse_int(text);
  if (!value || *value < 0 || *value > kMaxCpu) return std::nullopt;
  return static_cast<int>(*value);
}

}  // namespace

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  std::vector<int> cpus;
  for (const auto& piece : split(text, ',')) {
    if (strip(piece).empty()) continue;
    const std::size_t dash = piece.find('-');
    const auto first = cpu_number(std::string_view(piece).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : cpu_number(std::string_view(piece).substr(dash + 1));
    if (!first || !last || *last < *first)
      return fail(Errc::corrupt, fmt::format("'{}' is not a list of CPUs", printable(text)));
    for (int cpu = *first; cpu <= *last; ++cpu)
      cpus.push_back(cpu);
    // A bound on memory: "0-65535,0-65535,..." is short text.
    if (cpus.size() > 4 * std::size_t{kMaxCpu})
      return fail(Errc::corrupt, fmt::format("'{}' is not a list of CPUs", printable(text)));
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string print_cpu_list(std::span<const int> cpus) {
  std::vector<int> sorted(cpus.begin(), cpus.end());
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] <= sorted[end - 1] + 1)
      ++end;
    if (!text.empty()) text += ",";
    text += std::to_string(sorted[i]);
    if (sorted[end - 1] != sorted[i]) text += "-" + std::to_string(sorted[end - 1]);
    i = end;
  }
  return text;
}

Result<std::vector<int>> allowed_cpus() {
  // The kernel refuses a mask smaller than its own, and does not tell its size: try larger ones.
  for (int size = 1024; size <= kMaxCpu + 1; size *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(static_cast<std::size_t>(size)), [](cpu_set_t* mask) { CPU_FREE(mask); });
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(size));
    CPU_ZERO_S(bytes, set.get());
    if (sched_getaffinity(0, bytes, set.get()) != 0) {
      // EINVAL: the mask is still too small.
      if (errno == EINVAL) continue;
      return fail_sys("read the CPU affinity", errno);
    }
    std::vector<int> cpus;
    for (int cpu = 0; cpu < size; ++cpu)
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set.get())) cpus.push_back(cpu);
    return cpus;
  }
  return fail(Errc::internal, "this kernel has more CPUs than lockstep expects");
}

}  // namespace lockstep::host
