// Prints a job's two outputs from given byte offsets, until now or until the job ends.
#pragma once

#include "base/error.h"
#include "job/job_files.h"

#include <cstdint>
#include <string>

namespace lockstep::job {

// Byte offsets in both outputs.
struct Places {
  std::int64_t out = 0;
  std::int64_t err = 0;
};

enum class Until { now, end_of_job };

// Prints to stdout and stderr. Blocks. SIGPIPE ends this process once the reader is gone.
Status follow(const JobFiles& files, const Places& from, Until until);

// Returns the offsets at which the last `lines` lines of each output begin. lines 0: the ends of
// the outputs.
Places last_lines(const JobFiles& files, std::int64_t lines);
std::int64_t place_of_last(const std::string& path, std::int64_t lines);  // the same for one file

}  // namespace lockstep::job
