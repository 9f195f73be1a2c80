// The job that a command is about, where the user may leave its name out.
#pragma once

#include "base/error.h"
#include "cli/subcommand.h"
#include "jobs/job.h"

#include <memory>
#include <string>

namespace lockstep::cli {

// A command line with the name of the job.
struct NamedJob {
  std::string word;
  Args words;
  Parsed parsed;

  Call call(const Call& from) const { return {from.program, words, parsed}; }
};

// Opens the job; of several jobs of one name, the newest that runs.
Result<std::unique_ptr<jobs::Job>> open_named(const NamedJob& named);

// Returns the command line as it is, or with the id of the only job that runs. invalid_input:
// several words; or no word, and not exactly one job runs. The message lists the jobs. verb: "why".
Result<NamedJob> name_job(const Call& call, const std::string& verb);

}  // namespace lockstep::cli
