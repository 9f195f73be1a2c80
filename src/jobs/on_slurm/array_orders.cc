#include "jobs/on_slurm/array_orders.h"

#include "base/text.h"
#include "jobs/on_slurm/row_arrays.h"
#include "slurm/scancel_command.h"

#include <algorithm>

namespace lockstep::jobs::on_slurm {
namespace {

std::vector<std::string> last_first(std::vector<std::string> arrays) {
  std::erase(arrays, "");
  std::reverse(arrays.begin(), arrays.end());
  return arrays;
}

void add_hint(Error& error, const std::string& more) {
  error.hint += (error.hint.empty() ? "" : "; ") + more;
}

}  // namespace

Status cancel_arrays(const std::vector<std::string>& arrays, const SlurmWorld& world) {
  Status ended;
  bool some = false;
  for (const std::string& array : last_first(arrays)) {
    const auto told =
        slurm::ask_tool(world.run, slurm::scancel_command(array), "cancel job " + array);
    some = some || told;
    if (told) continue;
    ended = Failure(told.error());
    if (!slurm::is_of_ended_job(told.error())) return ended;
  }
  return some ? Status() : ended;
}

Error taken_back(Error error, std::vector<std::string> arrays, const SlurmWorld& world) {
  std::erase(arrays, "");
  if (arrays.empty()) return error;
  const Status canceled = cancel_arrays(arrays, world);
  if (canceled || slurm::is_of_ended_job(canceled.error())) {
    error.message += "; the arrays submitted so far are canceled: " + join(arrays, ", ");
  } else {
    error.message += "; the arrays submitted so far could not all be canceled; those left are held";
    add_hint(error, "scancel " + join(last_first(arrays), " "));
  }
  return error;
}

Status release_arrays(const std::vector<std::string>& arrays,
                      const std::vector<std::string>& settings, const SlurmWorld& world) {
  if (std::find(settings.begin(), settings.end(), kHold) != settings.end()) return {};
  const std::string list = join(last_first(arrays), ",");
  const auto told = slurm::ask_tool(world.run, {"scontrol", "release", list},
                                    "the rows are submitted and recorded, but held");
  if (told) return {};
  Error error = told.error();
  add_hint(error, "scontrol release " + list + " lets them begin");
  return Failure(std::move(error));
}

}  // namespace lockstep::jobs::on_slurm
