// The host's end of `lockstep install`: takes a request, carries out its steps, answers.
#pragma once

#include "setup/request.h"

#include <string>
#include <vector>

namespace lockstep::setup {

// wheels: where those of the request lie here. Words for people, and what the tools say, go to
// stderr as they come.
SetupAnswer set_up(const SetupRequest& request, const std::vector<std::string>& wheels);

// The whole life of `lockstep host-setup`: the request on stdin, the answer on stdout. Returns the
// exit code.
int serve_setup();

}  // namespace lockstep::setup
