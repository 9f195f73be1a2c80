#include "jobs/places/rented_state.h"

#include "cloud/journal.h"
#include "io/own_folders.h"

#include <unistd.h>

#include <algorithm>

namespace lockstep::jobs::places {

namespace {

bool is_of(const KnownJob& attempt, const cloud::RentedJob& course) {
  return course.cluster == attempt.place && attempt.created_ms >= course.began_ms;
}

bool saves(const cloud::RentedJob& course) {
  using Stage = cloud::RentedJob::Stage;
  return course.stage == Stage::ending || (course.stage == Stage::working && !course.back.empty());
}

// Returns whether the course looks for machines for its next attempt. The course clears the id of
// its job when machines are lost, and the next attempt has an id of its own.
bool restarts(const cloud::RentedJob& course) {
  return course.job.empty() && course.losses > 0 && course.goes_on();
}

}  // namespace

std::vector<cloud::RentedJob> courses_here() {
  const std::string folder = io::state_folder();
  // To open the journal would make it.
  if (access(cloud::Journal::path_in(folder).c_str(), R_OK) != 0) return {};
  auto journal = cloud::Journal::open(folder);
  auto jobs = journal ? journal->jobs() : Failure(journal.error());
  return jobs ? std::move(*jobs) : std::vector<cloud::RentedJob>();
}

std::optional<JobState> state_in_course(const KnownJob& attempt, const std::vector<KnownJob>& all,
                                        const std::vector<cloud::RentedJob>& courses) {
  const auto course = std::find_if(courses.begin(), courses.end(),
                                   [&](const auto& each) { return is_of(attempt, each); });
  if (course == courses.end()) {
    // The course has ended without another attempt.
    if (attempt.status.state == JobState::restarting) return JobState::lost;
    return std::nullopt;
  }
  const auto is_later = [&](const KnownJob& each) {
    return is_of(each, *course) && each.created_ms > attempt.created_ms;
  };
  const bool last = std::none_of(all.begin(), all.end(), is_later);
  // An attempt may also have ended by itself, at the notice of a preemption.
  if (last && restarts(*course)) return JobState::restarting;
  if (attempt.is_over())
    return course->job == attempt.id && saves(*course) ? std::optional(JobState::saving)
                                                       : std::nullopt;
  if (course->losses == 0 || course->job == attempt.id) return std::nullopt;
  // A job newer than the present attempt is another job, which the user runs beside the rented job.
  const bool replaced = std::any_of(all.begin(), all.end(), [&](const KnownJob& each) {
    return each.id == course->job && is_later(each);
  });
  return course->job.empty() || replaced ? std::optional(JobState::lost) : std::nullopt;
}

}  // namespace lockstep::jobs::places
