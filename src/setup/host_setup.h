// The host's end of `lockstep install`: reads a request, carries out its steps, and answers.
#pragma once

#include "setup/request.h"

#include <string>
#include <vector>

namespace lockstep::setup {

// Carries out all steps of a request and returns the answer, also after a failure. wheels: paths of
// the request's wheels on this host, in their order. Messages and the tools' output go to stderr as
// they come.
SetupAnswer set_up(const SetupRequest& request, const std::vector<std::string>& wheels);

// Runs `lockstep host-setup`: reads the request from stdin and writes the answer to stdout. Returns
// the exit code.
int serve_setup();

}  // namespace lockstep::setup
