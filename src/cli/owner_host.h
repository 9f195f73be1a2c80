// Commands about the machines of a job whose rental another host owns (`run --on-demand --guard
// HOST`). Commands about the job itself use jobs/rented/owned_job.h, as for every job.
#pragma once

#include "base/error.h"
#include "cli/subcommand.h"
#include "cloud/journal.h"
#include "jobs/rented/owned_end.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::cli {

// Returns the record of the job by the name of its cluster, or by its id on the machines. nullopt:
// no other host owns such a job. Opens no journal for users who never rented.
std::optional<cloud::RentedJob> find_owned(const std::string& word);
std::vector<cloud::RentedJob> owned_jobs();
// Refuses a name that a job on another host has.
Status check_not_owned_elsewhere(cloud::Journal& journal, const std::string& cluster);

// Lets the host run a command of this machine whose first name is such a job. path: the words
// before `call.words`. nullopt: the command is about something else.
Result<std::optional<ExitCode>> pass_to_owner(const Call& call, const Args& path);

// Returns the access to hosts that own rentals. program: begins the lines for the user.
jobs::rented::OwnedWorld owned_world(std::string_view program);

}  // namespace lockstep::cli
