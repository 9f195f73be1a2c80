// Reads the GPUs in values of Slurm's options and variables: --gres, --gpus..., --tres-per-task and
// SLURM_TRES_PER_TASK. Slurm accepts "=" for the last ":" everywhere. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

struct CountedGpus {
  std::string type = {};     // empty: any type
  std::optional<int> count;  // nullopt: the value has no number

  bool operator==(const CountedGpus&) const = default;
};

// Reads a value of --gpus, --gpus-per-node or --gpus-per-task: "8", "a100:8", "a100=8". A list of
// types gives the first type and the sum of the counts.
CountedGpus gpus_of_count(std::string_view value);

// Reads the GPUs in a value of --gres or --tres-per-task: "gpu", "gpu:a100:8(S:0)", "gres/gpu=2",
// "cpu=4,gres/gpu:1". Returns nullopt if the list has no GPUs.
std::optional<CountedGpus> gpus_of_gres(std::string_view value);

// Prints a value for --gpus-per-node: "a100:8", "8".
std::string print_gpus(const CountedGpus& gpus);

// The parts of a --tres-per-task value.
struct TresPerTask {
  std::optional<int> cpus = {};
  std::optional<CountedGpus> gpus = {};
  std::vector<std::string> rest = {};  // other resources, and entries without a number
};
TresPerTask read_tres_per_task(std::string_view value);

}  // namespace lockstep::slurm
