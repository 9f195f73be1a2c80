// Wheels that go with a Slurm job: copied into its folder when it is submitted; brought to the disk
// of every node, imported there and put first on PYTHONPATH before the node's agent starts.
#pragma once

#include "base/error.h"
#include "slurm/job_folder.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jobs::on_slurm {

struct JobWheel {
  std::string file;  // its name
  std::string sha256;
  std::uint64_t bytes = 0;
};

// wheels.json in the job's folder; the wheels are beside it in wheels/.
struct JobWheels {
  std::vector<JobWheel> wheels;
  std::string place = {};  // folder of the nodes' own disks
  int spare = 0;           // so many nodes may do without them
};
std::string wheels_text(const JobWheels& wheels);
Result<JobWheels> wheels_from_text(std::string_view text);

inline constexpr const char* kWheelsFile = "wheels.json";
inline constexpr const char* kWheelsFolder = "wheels";

// given: paths, or wheel:PATH, or wheel:KEY of the cache of `lockstep wheel`. Errors name the one
// that is none. Paths come back.
Result<std::vector<std::string>> find_wheels(const std::vector<std::string>& given,
                                             const std::string& folder);
// Into the folder of a job that is being submitted.
Status add_wheels(const slurm::JobFolder& folder, const std::vector<std::string>& paths,
                  JobWheels wheels);

}  // namespace lockstep::jobs::on_slurm
