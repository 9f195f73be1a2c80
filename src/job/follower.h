// Prints what a job says, from given places in its two outputs, as it comes; ends with the job.
#pragma once

#include "base/error.h"
#include "job/job_files.h"

#include <cstdint>
#include <string>

namespace lockstep::job {

// Places in both outputs, in bytes.
struct Places {
  std::int64_t out = 0;
  std::int64_t err = 0;
};

enum class Until { now, end_of_job };

// To stdout and stderr. Blocks; the kernel ends us when nobody reads any more.
Status follow(const JobFiles& files, const Places& from, Until until);

// Where the last so many lines of each output begin; 0: where it ends.
Places last_lines(const JobFiles& files, std::int64_t lines);
std::int64_t place_of_last(const std::string& path, std::int64_t lines);  // of one file

}  // namespace lockstep::job
