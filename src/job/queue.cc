#include "job/queue.h"

#include <algorithm>
#include <utility>

namespace lockstep::job {
namespace {

bool holds(const std::vector<std::string>& ids, const std::string& id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

bool counts(const JobSpec& job, const JobRecord& other) {
  return other.spec.id != job.id && other.state.stage != Stage::ended &&
         other.state.stage != Stage::lost;
}

}  // namespace

std::vector<std::string> jobs_ahead(const JobSpec& job, const std::vector<JobRecord>& others) {
  std::vector<std::string> ahead;
  for (const JobRecord& other : others) {
    if (!counts(job, other)) continue;
    const JobSpec& spec = other.spec;
    // The id breaks ties, so that all hosts agree.
    // Clocks of clients may differ. The order need not be fair, only the same everywhere.
    const bool older = std::pair(spec.created_ms, spec.id) < std::pair(job.created_ms, job.id);
    if (holds(job.after, spec.id) || (older && !holds(spec.after, job.id)))
      ahead.push_back(spec.id);
  }
  return ahead;
}

// Every host reports these jobs to the client, which tells all hosts (JobSpec::after). The hosts
// then agree on the order although they have seen the jobs in different orders.
std::vector<std::string> jobs_let_go(const JobSpec& job, const std::vector<JobRecord>& others) {
  std::vector<std::string> ahead;
  for (const JobRecord& other : others)
    if (counts(job, other) && other.state.stage != Stage::prepared) ahead.push_back(other.spec.id);
  return ahead;
}

}  // namespace lockstep::job
