// How many rows of a sweep run at once on a host, and which GPUs each of them sees. Pure.
#pragma once

#include "base/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::rows {

struct SlotRequest {
  std::vector<std::string> gpus = {};             // as CUDA_VISIBLE_DEVICES names them
  std::optional<std::int64_t> gpus_per_job = {};  // --gpus-per-job; 0: every row sees all GPUs
  std::int64_t workers = 1;  // of a row: GPUs of a row, if --gpus-per-job is not given
  std::optional<std::int64_t> at_once = {};  // --at-once: rows of all hosts together
  std::int64_t node = 0;
  std::int64_t nodes = 1;
};

// A slot runs one row after another.
struct Slot {
  std::optional<std::string> gpus = {};  // the value of CUDA_VISIBLE_DEVICES; nullopt: unchanged
};

// A host has a slot for each `gpus_per_job` of its GPUs, or one slot if GPUs do not count. With
// --at-once the hosts share the number, and a host without GPUs has its share of it. invalid_input:
// the host has too few GPUs for a row. May be empty: the other hosts have all slots.
Result<std::vector<Slot>> slots_of(const SlotRequest& request);

}  // namespace lockstep::rows
