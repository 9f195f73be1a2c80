// The wheels of a Slurm job. They are copied into the job's folder at submission. Before a node's
// agent starts, they are brought to the node's disk, imported there, and put first on PYTHONPATH.
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
  std::string file;  // file name
  std::string sha256;
  std::uint64_t bytes = 0;
};

// The content of wheels.json in the job's folder. The wheels lie beside it in wheels/.
struct JobWheels {
  std::vector<JobWheel> wheels;
  std::string place = {};  // folder on the nodes' own disks
  int spare = 0;           // this many nodes may fail to take the wheels
};
std::string wheels_text(const JobWheels& wheels);
Result<JobWheels> wheels_from_text(std::string_view text);

inline constexpr const char* kWheelsFile = "wheels.json";
inline constexpr const char* kWheelsFolder = "wheels";

// Returns the paths of wheels. given: paths, or wheel:PATH, or wheel:KEY from the cache of
// `lockstep wheel`. Errors name the word that is not a wheel.
Result<std::vector<std::string>> find_wheels(const std::vector<std::string>& given,
                                             const std::string& folder);
// Copies the wheels into the folder of a job before submission.
Status add_wheels(const slurm::JobFolder& folder, const std::vector<std::string>& paths,
                  JobWheels wheels);

}  // namespace lockstep::jobs::on_slurm
