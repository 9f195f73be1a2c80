// lockstep run --on: the same run, on other machines.
#pragma once

#include "cli/remote_options.h"
#include "cli/subcommand.h"

namespace lockstep::cli {

// Returns the exit code. call: of `lockstep run`, with --on.
int run_on_hosts(const Call& call, const RemoteOptions& options);

// One line for the first option that is of use only with --on; empty: none was given.
std::string needs_on(const Parsed& parsed);

}  // namespace lockstep::cli
