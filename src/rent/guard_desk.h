// The end of a client's words on the machine whose guard ends its rentals (`--guard HOST`). Each
// installation has a state folder of its own there, with a journal, the ssh keys of its rentals and
// a guard like the one on the user's own machine.
#pragma once

#include <string>
#include <vector>

namespace lockstep::rent {

// words: "ask" OWNER PROVIDER,... address|-; "tell" OWNER with the news on standard input; or
// "watch" OWNER with a word about a job there. The handled signals must be blocked. Returns the
// answer as one line, errors too.
std::string answer_guard_request(const std::vector<std::string>& words);

}  // namespace lockstep::rent
