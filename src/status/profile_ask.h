// Asks the agents of a job on this machine about a profile.
#pragma once

#include "status/job_socket.h"
#include "status/profile_answer.h"

#include <string>
#include <vector>

namespace lockstep::status {

// Returns the answers as JSON: that of each agent, with the traces that lie in its folder
// (look_for_traces()). An agent that does not answer within `limit` has an answer with `late`.
std::vector<std::string> ask_about_profile(const JobSocketName& of, const ProfileQuery& query,
                                           io::Duration limit);

}  // namespace lockstep::status
