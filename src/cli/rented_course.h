// Runs the course of a job on rented machines (jobs/rented/course_driver.h), whose attempts begin
// as `lockstep run --on` begins a job.
#pragma once

#include "cli/on_demand_options.h"
#include "cli/remote_options.h"
#include "cli/subcommand.h"
#include "rent/on_demand.h"

#include <optional>
#include <string_view>

namespace lockstep::cli {

inline constexpr std::string_view kRentedRun = "lockstep run --on-demand";

// Returns the exit code, once the job has ended or is left to another process. cannot_begin: why
// this process must not begin the job.
Result<int> run_rented_course(const Call& call, RemoteOptions remote,
                              const OnDemandOptions& options, rent::OnDemand& world,
                              cloud::Rental rental, cloud::RentedJob job,
                              std::optional<Error> cannot_begin);

}  // namespace lockstep::cli
