// GPUs as Slurm's options and variables count them: --gres, --gpus..., --tres-per-task and
// SLURM_TRES_PER_TASK. Slurm takes "=" for the last ":" everywhere. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

struct CountedGpus {
  std::string type = {};     // empty: any
  std::optional<int> count;  // nullopt: no number

  bool operator==(const CountedGpus&) const = default;
};

// "8", "a100:8", "a100=8": the value of --gpus, --gpus-per-node, --gpus-per-task. Of a list of
// types the type is the first one's, and the count is of all.
CountedGpus gpus_of_count(std::string_view value);

// The GPUs in the value of a --gres or a --tres-per-task: "gpu", "gpu:a100:8(S:0)", "gres/gpu=2",
// "cpu=4,gres/gpu:1". nullopt: the list has none.
std::optional<CountedGpus> gpus_of_gres(std::string_view value);

// "a100:8", "8".
std::string print_gpus(const CountedGpus& gpus);

// The value of a --tres-per-task.
struct TresPerTask {
  std::optional<int> cpus = {};
  std::optional<CountedGpus> gpus = {};
  std::vector<std::string> rest = {};  // what is neither, and what has no number
};
TresPerTask read_tres_per_task(std::string_view value);

}  // namespace lockstep::slurm
