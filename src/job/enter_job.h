// Runs a command beside the ranks of a job on this host: in the job's container, if the job has
// one, in the job's working folder, and with the environment of the agent.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::job {

// Variables for the command come to this process with this prefix: HOME or LD_PRELOAD of the job's
// container is not for the host.
inline constexpr std::string_view kEnterPrefix = "LOCKSTEP_ENTER_";

struct EnterRequest {
  // An id, or "pid-4711" for a plain `lockstep run`. "ID[12]": row 12 of a sweep.
  std::string job;
  std::string folder = {};              // from the job's folder on; empty: the job's folder
  std::vector<std::string> named = {};  // variables that the command gets too
  std::vector<std::string> command;
};
// Reads the words JOB FOLDER NAME,... COMMAND... Errors: invalid_input. enter_words() makes them.
Result<EnterRequest> read_enter(const std::vector<std::string>& words);
std::vector<std::string> enter_words(const EnterRequest& request);

// Returns the command's environment. agent: the bytes of /proc/PID/environ. own: the
// variables of this process, the named ones with the prefix. Leaves out Lockstep's own variables:
// some of them are secrets of the job. Pure.
std::vector<std::string> environment_inside(std::string_view agent,
                                            const std::vector<std::string>& own,
                                            const std::vector<std::string>& named);

// Becomes the command, and returns only an error: unavailable (no agent of the job runs here),
// timeout, invalid_input (several containers), not_found (no such command), denied.
Error enter_job(const EnterRequest& request);

}  // namespace lockstep::job
