// Runs commands on the host that owns the rental of a job (`run --on-demand --guard HOST`), for a
// client elsewhere. owner_talk.h lists the requests.
#pragma once

#include "base/error.h"
#include "cloud/rented_job.h"
#include "hosts/command_run.h"
#include "jobs/rented/owner_rules.h"
#include "jobs/rented/owner_talk.h"

#include <string>
#include <vector>

namespace lockstep::jobs::rented {

// Returns what `host-rental ARGV...` has printed on the host, and prints its stderr in printable
// form. Errors: unavailable (the host was not reached), canceled (by a signal of the user), and
// those of error_of_ask(). asked: set to how far the request came.
Result<std::string> ask_owner(const std::string& host, const std::vector<std::string>& argv,
                              const std::string& input = {}, Asked* asked = nullptr,
                              const hosts::RunCommand& run = hosts::over_links());
Result<OwnedState> state_of_owned(const cloud::RentedJob& job);

enum class OwnerOutput {
  words,  // of lockstep there: printed in printable form, and bounded
  job,    // of the job: printed unchanged, like all output of jobs
};
// Runs a user's command about the job on the host, prints its output, and returns its exit code.
Result<int> run_at_owner(const cloud::RentedJob& job, const std::vector<std::string>& command,
                         OwnerOutput output, const hosts::RunCommand& run = hosts::over_links());

}  // namespace lockstep::jobs::rented
