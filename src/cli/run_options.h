// The option tables of `lockstep run` and its kin, and what was parsed with them as launch
// understands it.
#pragma once

#include "cli/options.h"
#include "launch/raw_options.h"

namespace lockstep::cli {

const Table& run_table();       // lockstep run, torchrun
const Table& torchrun_table();  // the same rows under the name torchrun
const Table& launch_table();    // lockstep launch: run_table and what torch.distributed.launch adds

// parsed: by run_table or launch_table, with a script.
launch::RawOptions raw_options(const Parsed& parsed, bool legacy_launch);

}  // namespace lockstep::cli
