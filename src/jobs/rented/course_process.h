// The process of a course, as other processes see it: the journal names its pid, and its claim
// shows whether it lives.
#pragma once

#include "base/error.h"
#include "cloud/journal.h"

#include <optional>
#include <string>

namespace lockstep::jobs::rented {

// Returns the job of a rental. nullopt: there is none, or the user was told its end.
Result<std::optional<cloud::RentedJob>> job_of_rental(cloud::Journal& journal,
                                                      const std::string& rental);

// Sends SIGINT to the process, which then cancels the job. false: no process follows the job now.
bool interrupt_course(cloud::Journal& journal, const std::string& rental);

}  // namespace lockstep::jobs::rented
