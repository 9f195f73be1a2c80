// Runs Slurm's programs, and says what went wrong when they do not answer.
#pragma once

#include "base/error.h"
#include "proc/tool_output.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// Runs one of Slurm's programs, here or on a login host. That it ends with an error of its own is
// no error; that it could not be run, or is killed because it does not end, is one.
using RunTool = std::function<Result<proc::ToolOutput>(const std::vector<std::string>& argv)>;

// On this machine. Variables that would change the format of the output are left out (SQUEUE_*,
// SINFO_*, SACCT_*, SCONTROL_*), and moments come as Unix seconds.
Result<proc::ToolOutput> run_here(const std::vector<std::string>& argv);
std::vector<std::string> environment_for_tools(const std::vector<std::string>& own);

// What a failed program of Slurm's meant.
enum class Trouble {
  none,
  unreachable,  // the controller is down, or the network to it, or its key is another
  unknown_job,  // "Invalid job id specified"
  refused,      // anything else that it says
};
Trouble trouble_of(const proc::ToolOutput& said);

// unavailable: Slurm does not answer, so the same question may be answered later. Its line is the
// program's own, after what Lockstep wanted to know.
Error tool_error(std::string_view wanted, const std::string& tool, const proc::ToolOutput& said);

// The output of a program that must succeed.
Result<std::string> ask_tool(const RunTool& run, const std::vector<std::string>& argv,
                             std::string_view wanted);

}  // namespace lockstep::slurm
