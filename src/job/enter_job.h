// Runs a command beside the ranks of a job on this host: in the job's container, if the job has
// one, in the job's working folder, and with the environment of the agent.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::job {

struct EnterRequest {
  std::string job;                      // an id, or "pid-4711" for a plain `lockstep run`
  std::string folder = {};              // from the job's folder on; empty: the job's folder
  std::vector<std::string> named = {};  // variables of this process that the command gets too
  std::vector<std::string> command;
};
// Reads the words JOB FOLDER NAME,... COMMAND... Errors: invalid_input. enter_words() makes them.
Result<EnterRequest> read_enter(const std::vector<std::string>& words);
std::vector<std::string> enter_words(const EnterRequest& request);

// Returns the command's environment. agent: the bytes of /proc/PID/environ. own: "NAME=value" of
// this process. Leaves out Lockstep's own variables: some of them are secrets of the job. Pure.
std::vector<std::string> environment_inside(std::string_view agent,
                                            const std::vector<std::string>& own,
                                            const std::vector<std::string>& named);

// Becomes the command, and returns only an error: unavailable (no agent of the job runs here),
// not_found (no such command or folder), denied.
Error enter_job(const EnterRequest& request);

}  // namespace lockstep::job
