// `lockstep run --sweep` on this machine, by itself or as a host of a job.
#pragma once

#include "cli/subcommand.h"
#include "cli/sweep_options.h"

namespace lockstep::cli {

// Refuses a sweep that this machine could not run: words for several nodes, too few GPUs.
Status check_sweep(const Call& call, const SweepOptions& options);
// Runs the rows: a `lockstep run` for each. The handled signals must be blocked.
Result<ExitCode> run_sweep(const Call& call, const SweepOptions& options, const SweepRows& rows);

}  // namespace lockstep::cli
