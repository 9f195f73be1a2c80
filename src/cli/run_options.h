// The option tables of `lockstep run`, torchrun and `lockstep launch`, and the conversion of parsed
// options to the values of `launch`.
#pragma once

#include "cli/options.h"
#include "launch/raw_options.h"

#include <optional>
#include <string>

namespace lockstep::cli {

const Table& run_table();       // lockstep run, torchrun
const Table& torchrun_table();  // the same rows under the name torchrun
const Table& launch_table();    // lockstep launch: run_table and what torch.distributed.launch adds

// Returns the values for `launch`, unchecked. parsed: by this table, with a script. The caller sets
// legacy_launch and called_torchrun.
launch::RawOptions raw_options(const Table& table, const Parsed& parsed);

// Requests to `lockstep run` that start no job.
struct RunRequest {
  bool explain = false;
  std::optional<std::string> print_completion;  // the shell's name
};

}  // namespace lockstep::cli
