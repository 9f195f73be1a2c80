// The host's side of `--guard HOST`: answers a client's requests on the host that guards its
// rentals. Each client installation has a state folder of its own there, with a journal, the ssh
// keys of its rentals, and a guard like the one on the user's own machine.
#pragma once

#include "base/error.h"

#include <string>
#include <vector>

namespace lockstep::rent {

// Answers one request. words: "ask" OWNER PROVIDER,... address|-; or "tell" OWNER with the news on
// standard input. The handled signals must be blocked. Returns the answer as one line; an error is
// an answer too.
std::string answer_guard_request(const std::vector<std::string>& words);

// Reads a client's request from standard input: at most 1 MiB.
Result<std::string> read_request();

}  // namespace lockstep::rent
