// Runs a tool and waits without a time limit. Passes the output on line by line.
#pragma once

#include "base/error.h"
#include "setup/tool_plan.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct ToolCall {
  Argv argv;                          // argv[0] must be a path
  std::vector<std::string> env = {};  // "NAME=value", over this process's own environment
  std::string folder = "/";
};

struct ToolEnding {
  int code = 0;                        // exit code as a shell has it: 128 + signal
  std::vector<std::string> tail = {};  // the last 20 lines of output and errors
};

// Runs the tool with /dev/null as stdin. say: receives each line without its newline. An error
// means that the tool could not be started; a failing tool is a ToolEnding.
Result<ToolEnding> run_tool(const ToolCall& call, const std::function<void(std::string_view)>& say);

// Returns the most telling line of a failure: the last line marked as an error, else the last line.
std::string telling_line(const std::vector<std::string>& tail);

// Returns the path of a program in PATH, else at one of `places` (absolute, or below the home).
// Empty: not found.
std::string find_program(const std::string& name, const std::vector<std::string>& places = {});

}  // namespace lockstep::setup
