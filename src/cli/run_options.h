// The option tables of `lockstep run` and its kin, and what was parsed with them as launch
// understands it.
#pragma once

#include "cli/options.h"
#include "launch/raw_options.h"

#include <optional>
#include <string>

namespace lockstep::cli {

const Table& run_table();       // lockstep run, torchrun
const Table& torchrun_table();  // the same rows under the name torchrun
const Table& launch_table();    // lockstep launch: run_table and what torch.distributed.launch adds

// parsed: by this table, with a script. Whether it is `lockstep launch` or torchrun is not in it.
launch::RawOptions raw_options(const Table& table, const Parsed& parsed);

// What is asked of `lockstep run` in place of a job.
struct RunRequest {
  bool explain = false;
  std::optional<std::string> print_completion;  // the shell's name
};

}  // namespace lockstep::cli
