// Shows a job that this host owns to a client elsewhere: the log of its course goes to stdout and
// stderr, and Ctrl-C of the client's user to the course.
#pragma once

#include "cli/exit_code.h"
#include "cloud/journal.h"

#include <string>

namespace lockstep::cli {

// how: as of `host-rental follow` (jobs/rented/owner_talk.h). Returns the job's exit code at its
// end, 0 once a job that is shown until its start has started, or 128 + N if signal N ended the
// view. SIGINT cancels the job. Other signals only end the view, because a lost connection to the
// client ends this process by such a signal. The handled signals must be blocked.
Result<ExitCode> show_to_client(cloud::Journal journal, const cloud::RentedJob& job,
                                const std::string& how);

}  // namespace lockstep::cli
