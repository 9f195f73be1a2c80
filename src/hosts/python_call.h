// The messages between `lockstep call` and the Python that runs a function on a host.
// docs/protocols/call.md describes the messages. Pure.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hosts {

// The Python program that runs the function, for `python3 -c`.
extern const std::string_view kCallRunner;

// The parts of "train:main" or "pkg.mod:Class.method".
struct FunctionName {
  std::string module;
  std::string name;
};
// Fails with invalid_input if the text is not MODULE:FUNCTION.
Result<FunctionName> parse_function_name(std::string_view text);

struct PythonCall {
  FunctionName function;
  std::string arguments = {};          // JSON: {"args": [...], "kwargs": {...}}
  std::vector<std::string> path = {};  // for sys.path's front, relative to the working folder
  std::string root = ".";              // the project's root, relative to the working folder
  bool output_to_stderr = false;       // the function's prints go to stderr
};
// Returns the bytes for the runner's stdin.
std::string call_request(const PythonCall& call);

struct CallAnswer {
  enum class Kind {
    none,     // the process ended, or wrote an invalid answer, before the answer was complete
    value,    // `text` is the value, as JSON
    raised,   // `text` is the exception, as JSON: type, module, message, traceback
    refused,  // `text` is the reason why the call failed or has no value
  };
  Kind kind = Kind::none;
  std::string text = {};
};
// Reads the bytes of the `result` stream. Never fails: an incomplete answer is Kind::none.
CallAnswer parse_call_answer(std::string_view bytes);
// Returns the answer for a Python that cannot start, in the form of the runner's answers.
std::string refused_answer(std::string_view why);

}  // namespace lockstep::hosts
