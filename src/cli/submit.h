// `lockstep submit` on a login host, called for a client on another machine.
#pragma once

#include "cli/subcommand.h"

#include <string>

namespace lockstep::cli {

struct ForClient {
  std::string id;      // the client's id of the job; empty: the user typed the command here
  std::string folder;  // for a preview: the job's folder, which may not exist yet; else empty
};

// Submits the job, or prints it for --print, and returns the exit code. call: the words of
// `lockstep submit`. Call with the handled signals blocked.
Result<ExitCode> submit_for(const Call& call, const ForClient& client);

}  // namespace lockstep::cli
