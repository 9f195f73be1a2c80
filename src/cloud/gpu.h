// GPUs and their names. A table (machines.json) has canonical names, memory and aliases.
#pragma once

#include "base/error.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cloud {

struct Gpu {
  std::string name;    // "A100-80GB"
  std::string family;  // "A100"; the name itself where there is one kind only
  int memory_gb = 0;
  std::string arch = "x86_64";       // of the machines that have this GPU
  bool open_kernel_module = true;    // NVIDIA's open module drives it: Turing or newer
  std::vector<std::string> aliases;  // in small letters, without spaces, dashes and underscores
};

const std::vector<Gpu>& gpu_table();

// Finds a GPU by name or alias, ignoring case, dashes and spaces. nullptr: unknown.
const Gpu* find_gpu(std::string_view name);

// Finds the GPU of a provider's description: "NVIDIA A100-SXM4-80GB", "H100 (80 GB SXM5)".
// memory_gb: 0 if the description alone says it. nullptr: no GPU fits, or several do.
const Gpu* gpu_described(std::string_view description, int memory_gb = 0);

inline constexpr std::string_view kNoGpus = "no GPUs";  // GpuWish::text() of GpuWish::none

// The GPUs that a user asks for. Without kinds: any GPUs.
struct GpuWish {
  std::string name;  // as the table has it: a kind's name or a family's; count is 0: the whole text
  std::vector<const Gpu*> kinds;
  int count = 1;  // per machine; 0: a wish that this version does not know, which nothing meets
  bool at_least = false;
  bool none = false;  // machines without GPUs, and no others

  bool admits(std::string_view gpu, int gpus) const;
  std::string text() const;  // "A100:8"
};

// Parses "A100:8", or "V100" for one. Errors suggest the nearest names.
Result<GpuWish> parse_gpu_wish(std::string_view text);

}  // namespace lockstep::cloud
