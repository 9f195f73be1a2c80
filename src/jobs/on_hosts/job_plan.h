// The client's record for starting a lost part of a job again: the words of each node, the job's
// own token, and the user's variables. The plan has the names of secrets, never their values. The
// plan lies in state.db, readable only by its user. Pure.
#pragma once

#include "base/error.h"
#include "jobs/job_book.h"
#include "jobs/on_hosts/job_start.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::on_hosts {

inline constexpr const char* kTokenVariable = "LOCKSTEP_RDZV_TOKEN";

// Returns the plan as JSON, without the values of secrets.
std::string plan_text(const JobRequest& request, const StartedJob& started);

// The answer of a host about its part of a job.
struct PartAnswer {
  bool answered = false;
  std::optional<job::JobRecord> record = {};  // nullopt: it did not answer, or knows no such job
};
// Nodes by the state of their parts. unknown: the host did not answer, so the part may still run or
// have ended and must not be started again.
struct LostParts {
  std::vector<int> lost;
  std::vector<int> unknown;
  bool runs = false;  // some part runs by its host's own word
};
LostParts lost_parts(const std::vector<PartAnswer>& answers);

// Returns the request that starts the lost parts again. env: variables that override the kept
// variables. invalid_input: names the secrets missing in env. unavailable: only hosts that do not
// answer could tell whether another node hosts the rendezvous now.
Result<JobRequest> resumed_request(const jobs::KnownJob& job, const LostParts& parts,
                                   const std::vector<std::string>& env);

// Returns the request that starts these rows of a sweep again, on all of its hosts. Errors as of
// resumed_request().
Result<JobRequest> rows_request(const jobs::KnownJob& job, const std::vector<std::size_t>& rows,
                                const std::vector<std::string>& env);

}  // namespace lockstep::jobs::on_hosts
