// Runs Slurm's programs, and explains their failures.
#pragma once

#include "base/error.h"
#include "proc/tool_output.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// Runs one of Slurm's programs, here or on a login host. A nonzero exit is a result, not an error.
// Errors: the program cannot be run, or is killed because it does not end.
using RunTool = std::function<Result<proc::ToolOutput>(const std::vector<std::string>& argv)>;

// Runs a program on this machine, without variables that change output formats (SQUEUE_*, SINFO_*,
// SACCT_*, SCONTROL_*), and with moments as Unix seconds.
Result<proc::ToolOutput> run_here(const std::vector<std::string>& argv);
std::vector<std::string> environment_for_tools(const std::vector<std::string>& own);
// Runs srun for a step of a job that runs already, with a time limit. What came until then is the
// result. Leaves out the variables of the job that this process may run in.
Result<proc::ToolOutput> run_step_here(const std::vector<std::string>& argv);
std::vector<std::string> environment_for_steps(const std::vector<std::string>& own);
// Returns the command for a login host that runs the program in the same way. Its exit code is that
// of the program, or 127 if the program is missing there.
std::vector<std::string> command_for_tools(const std::vector<std::string>& argv);

// The meaning of a failed call.
enum class Trouble {
  none,
  unreachable,  // controller down, network broken, or another munge key
  unknown_job,  // "Invalid job id specified"
  refused,      // any other failure
};
Trouble trouble_of(const proc::ToolOutput& said);

// Makes an error of a failed call: unavailable if Slurm does not answer (worth a retry), else
// invalid_input. The message has Slurm's own line behind `wanted`, the purpose of the call.
Error tool_error(std::string_view wanted, const std::string& tool, const proc::ToolOutput& said);

// Runs a program and returns the output. A failed program is an error, see tool_error().
Result<std::string> ask_tool(const RunTool& run, const std::vector<std::string>& argv,
                             std::string_view wanted);

}  // namespace lockstep::slurm
