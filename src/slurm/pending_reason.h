// Explains in words why a job waits and what to change. Pure.
#pragma once

#include "slurm/job_report.h"
#include "slurm/partitions.h"
#include "slurm/sinfo_command.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

enum class Outlook {
  starts_by_itself,  // sooner or later
  held,              // until a user or administrator releases the job
  never,             // not with these options: change or resubmit the job
  needs_site,        // until the cluster's administrators act
  unknown,           // Slurm's reason does not tell; never treated as harmless
  runs,
  ended,
};
std::string_view outlook_word(Outlook outlook);  // "starts-by-itself", ...

struct Explanation {
  Outlook outlook = Outlook::unknown;
  std::string why;                  // one line
  std::vector<std::string> advice;  // one line each; empty: nothing to do
};

// Facts about the cluster around a job. Each part may be empty.
struct Surroundings {
  std::vector<Partition> partitions;
  std::vector<OutOfService> out;
  std::int64_t now = 0;  // Unix seconds
};

// Explains a waiting job. An unknown reason is repeated in Slurm's words, with the outlook unknown.
// A job of priority 0 is held, whatever the reason says.
Explanation explain_pending(const JobReport& job, const Surroundings& around);

// Explains the name of a limit: "QOSMaxGRESPerUser" -> "the QOS allows each user only so many
// GPUs". Empty: not the name of a limit.
std::string limit_words(std::string_view reason);

// Returns the nodes that failed to launch the job, judged by Slurm's notes about nodes. Prefers
// failures close to the job's requeue.
std::vector<OutOfService> failed_to_launch(const JobReport& job, const Surroundings& around);

}  // namespace lockstep::slurm
