#include "cli/owner_host.h"

#include "cli/on_demand.h"
#include "jobs/rented/owned_job.h"
#include "jobs/rented/owner_ask.h"

#include <utility>

namespace lockstep::cli {

Result<std::optional<ExitCode>> pass_to_owner(const Call& call, const Args& path) {
  if (call.parsed.names.empty()) return std::optional<ExitCode>();
  LOCKSTEP_TRY_ASSIGN(const auto job, jobs::rented::find_owned(call.parsed.names.front(),
                                                               jobs::rented::read_courses()));
  if (!job) return std::optional<ExitCode>();
  Args command = path;
  command.insert(command.end(), call.words.begin(), call.words.end());
  LOCKSTEP_TRY_ASSIGN(const int code,
                      jobs::rented::run_at_owner(*job, command, jobs::rented::OwnerOutput::words));
  return std::optional(passed_on(code));
}

jobs::rented::OwnedWorld owned_world(std::string_view program) {
  jobs::rented::OwnedWorld world;
  world.say = [program](const std::string& text) { tell_line(program, text); };
  return world;
}

}  // namespace lockstep::cli
