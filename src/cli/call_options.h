// The command line of `lockstep call`.
#pragma once

#include "base/error.h"
#include "cli/options.h"
#include "cli/place_options.h"
#include "cli/variable_options.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cli {

struct CallOptions {
  std::string where;     // a cluster or a host
  std::string function;  // "module:function"; empty with answer_fd
  std::string args = "[]";
  std::string kwargs = "{}";
  PlaceOptions places;
  std::optional<std::string> project;
  std::optional<std::string> folder;  // --cwd
  VariableOptions variables;
  std::string python = "python3";
  bool json = false;
  // Set if a program calls: the request comes on stdin, and the answer goes to this descriptor.
  std::optional<std::int64_t> answer_fd;
};

const Table& call_table();

// Checks the words and the JSON of the arguments, without asking a host. Errors: invalid_input.
Result<CallOptions> call_options(const Parsed& parsed);

}  // namespace lockstep::cli
