// How a job stands, by the records that its hosts keep of it.
#pragma once

#include "base/error.h"
#include "job/job_spec.h"
#include "jobs/job_book.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::jobs {

// All nodes of a job together. lost: no host knows how the job ended.
struct JobEnding {
  job::Stage stage = job::Stage::lost;
  std::optional<int> code = {};  // set where the job has ended, and only there
  std::int64_t ended_ms = 0;
  bool canceled = false;
  bool by_person = false;  // canceled, and not by a notice, a lease or the like
};
JobEnding ending_of(const std::vector<std::optional<job::JobRecord>>& nodes);
Status note_ending(const JobBook& book, const std::string& id, const JobEnding& ending);

// What `host-job status ID` prints on a host: one record, or none where the host knows no such job.
// corrupt: anything else. Pure.
Result<std::optional<job::JobRecord>> parse_status(std::string_view text);

// Asks all hosts of a job; nullopt: the host was not reached, or knows no such job.
Result<std::vector<std::optional<job::JobRecord>>> ask_status(const KnownJob& job);

}  // namespace lockstep::jobs
