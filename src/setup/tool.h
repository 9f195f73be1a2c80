// Runs a tool and waits for it, however long it takes; what it says is passed on line by line.
#pragma once

#include "base/error.h"
#include "setup/tool_plan.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::setup {

struct ToolCall {
  Argv argv;                          // argv[0] is a path
  std::vector<std::string> env = {};  // "NAME=value", over this process's own
  std::string folder = "/";
};

struct ToolEnding {
  int code = 0;                        // as a shell has it: 128 + signal
  std::vector<std::string> tail = {};  // the last lines of its output and errors
};

// say: is given each line as it comes, without its end. The tool reads nothing. An error: it could
// not be started.
Result<ToolEnding> run_tool(const ToolCall& call, const std::function<void(std::string_view)>& say);

// The line that says most about a failure: the last one that calls itself an error, else the last.
std::string telling_line(const std::vector<std::string>& tail);

// A program of this name in PATH, else at one of these places below the home or absolute. Empty: it
// is not there.
std::string find_program(const std::string& name, const std::vector<std::string>& places = {});

}  // namespace lockstep::setup
