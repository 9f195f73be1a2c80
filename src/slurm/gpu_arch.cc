#include "slurm/gpu_arch.h"

#include "base/text.h"

#include <algorithm>
#include <optional>
#include <string>

namespace lockstep::slurm {
namespace {

struct ComputeCapability {
  int major = 0;
  int minor = 0;
  bool operator==(const ComputeCapability&) const = default;
};

struct NamedArch {
  std::string_view name;
  int major;
};
constexpr NamedArch kNames[] = {{"pascal", 6}, {"volta", 7},  {"turing", 7},    {"ampere", 8},
                                {"ada", 8},    {"hopper", 9}, {"blackwell", 10}};

// Parses "12.4.1" into 12 and 4.
std::optional<ComputeCapability> two_numbers(std::string_view text) {
  const auto parts = split(text, '.');
  const auto major = parse_int(parts.front());
  const auto minor = parts.size() > 1 ? parse_int(parts[1]) : std::optional<std::int64_t>(0);
  if (!major || !minor || *major < 0 || *minor < 0 || *major > 10000 || *minor > 10000)
    return std::nullopt;
  return ComputeCapability{static_cast<int>(*major), static_cast<int>(*minor)};
}

bool covers(std::string_view item, ComputeCapability gpu) {
  const bool ptx = item.ends_with("+ptx");
  if (ptx) item.remove_suffix(4);
  // PyTorch's names stand for whole families. "Blackwell" includes 12.x as well, so 12.x counts as
  // covered by each name.
  for (const NamedArch& each : kNames)
    if (item == each.name)
      return gpu.major == each.major || gpu.major == 12 || (ptx && gpu.major > each.major);
  const bool exact = item.ends_with("a");  // 9.0a runs nowhere else
  if (exact) item.remove_suffix(1);
  const auto arch = two_numbers(item);
  // A newer notation: do not blame it.
  if (!arch) return true;
  if (exact) return *arch == gpu;
  if (arch->major == gpu.major) return arch->minor <= gpu.minor;
  return ptx && arch->major < gpu.major;
}

}  // namespace

bool arch_list_covers(std::string_view list, int capability) {
  const ComputeCapability gpu{capability / 10, capability % 10};
  std::string text = to_lower(list);
  std::replace(text.begin(), text.end(), ' ', ';');
  std::replace(text.begin(), text.end(), ',', ';');
  bool any = false;
  for (const std::string& each : split(text, ';')) {
    if (each.empty()) continue;
    any = true;
    if (covers(each, gpu)) return true;
  }
  return !any;
}

}  // namespace lockstep::slurm
