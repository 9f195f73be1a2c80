// Commands about the machines of a job whose rental another host owns (`run --on-demand --guard
// HOST`). Commands about the job itself use jobs/rented/owned_job.h, as for every job.
#pragma once

#include "base/error.h"
#include "cli/subcommand.h"
#include "jobs/rented/owned_end.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

// Lets the host run a command of this machine whose first name is such a job. path: the words
// before `call.words`. nullopt: the command is about something else.
Result<std::optional<ExitCode>> pass_to_owner(const Call& call, const Args& path);

// Returns the access to hosts that own rentals. program: begins the lines for the user.
jobs::rented::OwnedWorld owned_world(std::string_view program);

}  // namespace lockstep::cli
