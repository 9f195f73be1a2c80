// Builds a wheel where the right GPUs and compiler are: in a Slurm job, or on a host over SSH. The
// wheel fits the CPUs and GPUs of all target nodes, and comes back to the cache here.
#pragma once

#include "base/error.h"
#include "hosts/host_link.h"
#include "setup/wheel_build.h"
#include "slurm/sbatch_options.h"

#include <string>
#include <vector>

namespace lockstep::project {

// Builds with this machine's Slurm. settings: sbatch options of the build job. First asks the idle
// nodes what their CPUs have in common.
Result<setup::BuiltWheel> build_wheel_in_job(const setup::WheelRequest& request,
                                             const std::vector<slurm::Setting>& settings,
                                             const setup::SayLine& say);

struct WheelHosts {
  std::vector<hosts::HostPlace> hosts;  // the first one builds
  bool is_login = false;                // in a job of its Slurm
  std::vector<slurm::Setting> settings = {};
};
// The signals of proc::handled_signals() must be blocked.
Result<setup::BuiltWheel> build_wheel_on(const WheelHosts& where,
                                         const setup::WheelRequest& request,
                                         const setup::SayLine& say);

}  // namespace lockstep::project
