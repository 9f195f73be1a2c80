// The states restarting and saving of a job on rented machines. Only the record of the job's course
// has them: machines do not know that other machines are being found or outputs brought back.
#pragma once

#include "cloud/rented_job.h"
#include "jobs/job_book.h"

#include <optional>
#include <vector>

namespace lockstep::jobs::places {

// Returns the records of the courses of this user's rented jobs; empty if nothing was ever rented.
std::vector<cloud::RentedJob> courses_here();

// Returns the state of one attempt of a job by the records of all courses. nullopt: ask the hosts.
// restarting: its machines were lost, and the course looks for others. lost: the same, and a later
// attempt runs or none will. saving: the attempt has ended, and its course is not done yet. all:
// the jobs of the journal, with all attempts. Pure.
std::optional<JobState> state_in_course(const KnownJob& attempt, const std::vector<KnownJob>& all,
                                        const std::vector<cloud::RentedJob>& courses);

}  // namespace lockstep::jobs::places
