#include "jobs/on_slurm/array_submit.h"

#include "jobs/on_slurm/array_orders.h"
#include "slurm/ask_cluster.h"

#include <utility>

namespace lockstep::jobs::on_slurm {
namespace {

// Says what may help after a refusal. taken: how many arrays Slurm has taken.
std::string hint_of(const ArrayCall& call, std::size_t taken) {
  if (taken == 0) return "";
  return call.earlier.empty() ? fewer_rows_hint(call.arrays, taken)
                              : "run lockstep resume again once Slurm takes more jobs";
}

}  // namespace

Result<std::vector<std::string>> submit_arrays(const ArrayCall& call,
                                               const slurm::JobFolder& folder,
                                               const SlurmWorld& world) {
  std::vector<std::string> numbers;
  for (const RowArray& array : call.arrays) {
    SbatchCall sbatch = call.sbatch;
    // No row may run before Slurm has all arrays, and the record their numbers.
    if (call.arrays.size() > 1) sbatch.settings.emplace_back(kHold);
    const bool waits = call.one_at_a_time && !numbers.empty();
    sbatch.settings =
        array_words(std::move(sbatch.settings), array, waits ? numbers.back() : std::string());
    if (call.several) sbatch.first_row = array.first_row;
    auto number = call_sbatch(sbatch, folder, world);
    // After sbatch gave no answer, squeue may still list the earlier array alone.
    if (number && array.index < call.earlier.size() && *number == call.earlier[array.index])
      number =
          fail(Errc::unavailable, "sbatch gave no answer, and Slurm shows no new array of rows",
               "squeue shows whether the rows were submitted; then run lockstep resume again");
    if (!number) {
      Error error = std::move(number.error());
      if (error.hint.empty()) error.hint = hint_of(call, numbers.size());
      return Failure(taken_back(std::move(error), numbers, world));
    }
    numbers.push_back(std::move(*number));
  }
  return numbers;
}

std::size_t ask_array_rows(const slurm::RunTool& run) {
  const auto text = slurm::ask_tool(run, {"scontrol", "show", "config"}, "its settings");
  return text ? array_rows_of(slurm::parse_config(*text)) : kUsualArrayRows;
}

}  // namespace lockstep::jobs::on_slurm
