#include "jobs/places/free_name.h"

#include "jobs/places/job_refresh.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep::jobs::places {

Result<std::string> free_name(const JobBook& book, const std::string& name) {
  LOCKSTEP_TRY_ASSIGN(auto others, book.going_on(name));
  if (others.empty()) return name;
  // The journal may be out of date, so ask before taking another name.
  LOCKSTEP_TRY(refresh_jobs(book, others));
  std::erase_if(others, [](const KnownJob& job) { return job.is_over(); });
  std::string free = name;
  for (int number = 2; !others.empty(); ++number) {
    free = fmt::format("{}-{}", name, number);
    LOCKSTEP_TRY_ASSIGN(others, book.going_on(free));
  }
  return free;
}

}  // namespace lockstep::jobs::places
