// Builds a wheel on a machine with the right GPUs and compiler: in a Slurm job, or on a host over
// SSH. The wheel fits the CPUs and GPUs of all target nodes, and comes back to the cache here.
#pragma once

#include "base/error.h"
#include "hosts/command_run.h"
#include "hosts/host_link.h"
#include "setup/wheel_build.h"
#include "slurm/sbatch_options.h"

#include <string>
#include <vector>

namespace lockstep::project {

// Builds with this machine's Slurm. settings: sbatch options of the build job. First asks idle
// nodes for the common part of their CPUs. not_found: no srun here.
Result<setup::BuiltWheel> build_wheel_in_job(const setup::WheelRequest& request,
                                             const std::vector<slurm::Setting>& settings,
                                             const setup::SayLine& say);

struct WheelHosts {
  std::vector<hosts::HostPlace> hosts;        // the first host builds; the wheel must run on all
  bool is_login = false;                      // a Slurm login host: builds in a job there
  std::vector<slurm::Setting> settings = {};  // for that job
};
// Builds on a host and fetches the wheel. The signals of proc::handled_signals() must be blocked.
Result<setup::BuiltWheel> build_wheel_on(
    const WheelHosts& where, const setup::WheelRequest& request, const setup::SayLine& say,
    const hosts::RunCommand& run_command = hosts::over_links());

}  // namespace lockstep::project
