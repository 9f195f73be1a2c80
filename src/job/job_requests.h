// What a client asks of the jobs on a host, by `lockstep host-job`.
#pragma once

#include "base/error.h"

#include <string>
#include <vector>

namespace lockstep::job {

// words: start | follow ID OUT ERR | print ID OUT ERR | places ID LINES | status [ID...] |
// report ID | cancel ID. `follow` ends with the job; how it ended `status` tells. Talks over stdin
// and stdout; returns the exit code.
Result<int> serve_request(const std::vector<std::string>& words);

}  // namespace lockstep::job
