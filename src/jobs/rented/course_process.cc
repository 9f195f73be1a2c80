#include "jobs/rented/course_process.h"

#include "io/fd.h"
#include "rent/job_claim.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace lockstep::jobs::rented {
namespace {

// Returns the pid once the process handles signals; 0 before, or if no process lives.
std::int64_t ready_pid(cloud::Journal& journal, const std::string& rental) {
  const auto job = job_of_rental(journal, rental);
  return job && *job && rent::job_is_claimed(rental) ? (*job)->follower : 0;
}

}  // namespace

Result<std::optional<cloud::RentedJob>> job_of_rental(cloud::Journal& journal,
                                                      const std::string& rental) {
  LOCKSTEP_TRY_ASSIGN(auto jobs, journal.jobs());
  for (cloud::RentedJob& job : jobs)
    if (job.rental == rental) return std::optional(std::move(job));
  return std::optional<cloud::RentedJob>();
}

bool interrupt_course(cloud::Journal& journal, const std::string& rental) {
  const std::int64_t pid = ready_pid(journal, rental);
  if (pid == 0) return false;
  const io::Fd course(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // The pid may have another owner by now, unless the journal still names it after the open.
  return course && ready_pid(journal, rental) == pid &&
         syscall(SYS_pidfd_send_signal, course.get(), SIGINT, nullptr, 0) == 0;
}

}  // namespace lockstep::jobs::rented
