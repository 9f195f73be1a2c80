#include "jobs/on_slurm/array_submit.h"

#include "base/text.h"
#include "slurm/ask_cluster.h"
#include "slurm/scancel_command.h"

#include <fmt/core.h>

namespace lockstep::jobs::on_slurm {
namespace {

// Cancels the arrays that Slurm has taken, from the last one on: one that waits must not begin when
// the one before it ends. Adds to the error what has become of them.
Error taken_back(Error error, const std::vector<std::string>& numbers, const SlurmWorld& world) {
  if (numbers.empty()) return error;
  std::vector<std::string> left;
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number)
    if (!slurm::ask_tool(world.run, slurm::scancel_command(*number), "cancel job " + *number))
      left.push_back(*number);
  if (left.empty()) {
    error.message += fmt::format("; the arrays before it are canceled: {}", join(numbers, ", "));
  } else {
    error.message += "; arrays before it could not be canceled";
    error.hint = "scancel " + join(left, " ");
  }
  return error;
}

}  // namespace

Result<std::vector<std::string>> submit_arrays(const ArrayCall& call,
                                               const slurm::JobFolder& folder,
                                               const SlurmWorld& world) {
  std::vector<std::string> numbers;
  for (const RowArray& array : call.arrays) {
    SbatchCall sbatch = call.sbatch;
    const bool waits = call.one_at_a_time && !numbers.empty();
    sbatch.settings =
        array_words(call.sbatch.settings, array, waits ? numbers.back() : std::string());
    if (call.several) sbatch.first_row = array.first_row;
    auto number = call_sbatch(sbatch, folder, world);
    // After sbatch gave no answer, squeue may still list the earlier array alone.
    if (number && array.index < call.earlier.size() && *number == call.earlier[array.index])
      number =
          fail(Errc::unavailable, "sbatch gave no answer, and Slurm shows no new array of rows",
               "squeue shows whether the rows were submitted; then run lockstep resume again");
    if (!number) return Failure(taken_back(number.error(), numbers, world));
    numbers.push_back(std::move(*number));
  }
  return numbers;
}

std::size_t ask_array_rows(const slurm::RunTool& run) {
  const auto text = slurm::ask_tool(run, {"scontrol", "show", "config"}, "its settings");
  return text ? array_rows_of(slurm::parse_config(*text)) : kUsualArrayRows;
}

}  // namespace lockstep::jobs::on_slurm
