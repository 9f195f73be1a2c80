// The messages between `lockstep call` and the Python that runs a function on a host.
// docs/protocols/call.md describes them. Pure.
#pragma once

#include "base/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::hosts {

// The program that runs the function: Python's, for `python3 -c`.
extern const std::string_view kCallRunner;

// "train:main" or "pkg.mod:Class.method".
struct FunctionName {
  std::string module;
  std::string name;
};
Result<FunctionName> parse_function_name(std::string_view text);

struct PythonCall {
  FunctionName function;
  std::string arguments = {};          // JSON: {"args": [...], "kwargs": {...}}
  std::vector<std::string> path = {};  // folders in front of sys.path, relative to where it runs
  std::string root = ".";              // of the project, likewise
  bool output_to_stderr = false;       // what the function prints
};
std::string call_request(const PythonCall& call);

struct CallAnswer {
  enum class Kind {
    none,     // the process ended, or wrote nonsense, before there was an answer
    value,    // `text` is the value, as JSON
    raised,   // `text` is the exception, as JSON: type, module, message, traceback
    refused,  // `text` says why the call failed or has no value
  };
  Kind kind = Kind::none;
  std::string text = {};
};
CallAnswer parse_call_answer(std::string_view bytes);
// The answer if Python cannot start.
std::string refused_answer(std::string_view why);

}  // namespace lockstep::hosts
