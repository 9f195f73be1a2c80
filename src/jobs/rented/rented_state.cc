#include "jobs/rented/rented_state.h"

#include "cloud/journal.h"
#include "io/own_folders.h"
#include "job/job_spec.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>

namespace lockstep::jobs::rented {

namespace {

bool saves(const cloud::RentedJob& course) {
  return course.stage == cloud::RentedJob::Stage::ending ||
         (course.stage == cloud::RentedJob::Stage::working && !course.back.empty());
}

// Returns whether the course looks for machines for its next attempt. The course clears the id of
// its job when machines are lost.
bool restarts(const cloud::RentedJob& course) {
  return course.job.empty() && course.losses > 0 && course.goes_on();
}

}  // namespace

Result<std::vector<cloud::RentedJob>> read_courses() {
  const std::string folder = io::state_folder();
  // To open the journal would make it.
  if (access(cloud::Journal::path_in(folder).c_str(), F_OK) != 0 && errno == ENOENT)
    return std::vector<cloud::RentedJob>();
  LOCKSTEP_TRY_ASSIGN(auto journal, cloud::Journal::open(folder));
  return journal.jobs();
}

std::vector<cloud::RentedJob> courses_here() {
  return read_courses().value_or(std::vector<cloud::RentedJob>());
}

// The course keeps the id before the first host is told.
std::string job_id_of(const cloud::RentedJob& course) {
  return course.job.empty() ? job::job_id_of(course.run_id) : course.job;
}

const cloud::RentedJob* course_of(const KnownJob& job,
                                  const std::vector<cloud::RentedJob>& courses) {
  const auto found = std::find_if(courses.begin(), courses.end(), [&](const auto& course) {
    return course.host.empty() && job_id_of(course) == job.id;
  });
  return found == courses.end() ? nullptr : &*found;
}

std::optional<JobState> state_in_course(const KnownJob& job,
                                        const std::vector<cloud::RentedJob>& courses) {
  const cloud::RentedJob* const course = course_of(job, courses);
  // The course has ended without another attempt, or the user was told its end.
  if (course == nullptr)
    return job.status.state == JobState::restarting ? std::optional(JobState::lost) : std::nullopt;
  // An attempt may also have ended by itself, at the notice of a preemption.
  if (restarts(*course)) return JobState::restarting;
  const bool gave_up = course->job.empty() && !course->goes_on();
  if (!job.is_over()) return gave_up ? std::optional(JobState::lost) : std::nullopt;
  return !gave_up && saves(*course) ? std::optional(JobState::saving) : std::nullopt;
}

}  // namespace lockstep::jobs::rented
