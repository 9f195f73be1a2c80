// Builds a wheel where the right GPUs and compiler are: in a job on a node of Slurm's, or on a host
// over SSH, for the CPUs and GPUs of all nodes that it is to run on; it comes back to the cache
// here.
#pragma once

#include "base/error.h"
#include "hosts/host_link.h"
#include "setup/wheel_build.h"
#include "slurm/sbatch_options.h"

#include <string>
#include <vector>

namespace lockstep::project {

// By the Slurm of this machine. settings: of sbatch, for the job that builds; the nodes that are
// free now are asked first what their CPUs have in common.
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
