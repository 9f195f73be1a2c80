// Shows a job that this host owns to a client elsewhere: the log of its course goes to stdout, and
// Ctrl-C of the client's user to the course.
#pragma once

#include "cli/exit_code.h"
#include "cloud/journal.h"

#include <cstdint>
#include <string>

namespace lockstep::cli {

// The arguments of `host-rental follow` (jobs/rented/owner_talk.h).
struct ClientView {
  std::string how;
  std::uint64_t shown = 0;  // place in the whole log up to which the client has seen it
  bool canceled = false;
  bool to_end = false;
};

// Returns the job's exit code at its end, or 0 once a job that is shown until its start has
// started. SIGINT cancels the job. Other signals only end this process, because a lost connection
// to the client sends such a signal. The handled signals must be blocked.
Result<ExitCode> show_to_client(cloud::Journal journal, const cloud::RentedJob& job,
                                const ClientView& view);

}  // namespace lockstep::cli
