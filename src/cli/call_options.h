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
  std::string where;
  std::string function;  // "module:function"; without answer_fd
  std::string args = "[]";
  std::string kwargs = "{}";
  PlaceOptions places;
  std::optional<std::string> project;
  std::optional<std::string> folder;  // --cwd
  VariableOptions variables;
  std::string python = "python3";
  bool json = false;
  std::optional<std::int64_t> answer_fd;  // a program calls: it writes the request to our stdin
};

const Table& call_table();

Result<CallOptions> call_options(const Parsed& parsed);

}  // namespace lockstep::cli
