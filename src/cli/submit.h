// lockstep submit, as a client elsewhere has it called on a login host.
#pragma once

#include "cli/subcommand.h"

#include <string>

namespace lockstep::cli {

struct ForClient {
  std::string id;      // of the job, the client's
  std::string folder;  // where it would be submitted, for a preview where that is not there yet
};

// call: of `lockstep submit`. The handled signals must be blocked.
Result<ExitCode> submit_for(const Call& call, const ForClient& client);

}  // namespace lockstep::cli
