// The states restarting and saving of a job on rented machines. Only the record of the job's course
// has them: machines do not know that other machines are being found or outputs brought back.
#pragma once

#include "base/error.h"
#include "cloud/rented_job.h"
#include "jobs/job_book.h"

#include <optional>
#include <string>
#include <vector>

namespace lockstep::jobs::rented {

// Reads the records of the courses of this user's rented jobs; empty if nothing was ever rented. An
// unreadable journal is an error: it may have records.
Result<std::vector<cloud::RentedJob>> read_courses();
// The same for views that may miss a course: an unreadable journal has no records.
std::vector<cloud::RentedJob> courses_here();

// Returns the id of the job of a course, the same for all attempts.
std::string job_id_of(const cloud::RentedJob& course);
// Returns the course of a job. nullptr: the job has none, or another host has the course.
const cloud::RentedJob* course_of(const KnownJob& job,
                                  const std::vector<cloud::RentedJob>& courses);

// Returns the state of a job by the records of all courses. nullopt: ask the hosts. restarting: its
// machines were lost, and the course looks for others. lost: the course has ended without an
// attempt. saving: the job has ended, and its course is not done yet. Pure.
std::optional<JobState> state_in_course(const KnownJob& job,
                                        const std::vector<cloud::RentedJob>& courses);

}  // namespace lockstep::jobs::rented
