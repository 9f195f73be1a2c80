// Why a job waits, in words, and what to change. Pure.
#pragma once

#include "slurm/job_status.h"
#include "slurm/partitions.h"
#include "slurm/sinfo_command.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

enum class Outlook {
  starts_by_itself,  // sooner or later
  held,              // until somebody releases it
  never,             // not as it was asked for: it must be changed or sent again
  needs_site,        // until those who run the cluster have done something
  unknown,           // Slurm's reason does not tell; never taken for harmless
  runs,
  ended,
};
std::string_view outlook_word(Outlook outlook);  // "starts-by-itself", ...

struct Explanation {
  Outlook outlook = Outlook::unknown;
  std::string why;                  // one line
  std::vector<std::string> advice;  // a line each; none: there is nothing to do
};

// What is known of the cluster around the job; nothing of it must be.
struct Surroundings {
  std::vector<Partition> partitions;
  std::vector<OutOfService> out;
  std::int64_t now = 0;  // Unix seconds
};

// For a job whose phase is waiting. A reason that is not known is given back as Slurm says it, with
// the outlook unknown. A job of priority 0 is held, whatever its reason says.
Explanation explain_pending(const JobStatus& job, const Surroundings& around);

// "QOSMaxGRESPerUser" -> "the QOS allows each user only so many GPUs". Empty: it is no limit.
std::string limit_words(std::string_view reason);

// The nodes that failed to launch a job around then, by what Slurm noted about them.
std::vector<OutOfService> failed_to_launch(const JobStatus& job, const Surroundings& around);

}  // namespace lockstep::slurm
