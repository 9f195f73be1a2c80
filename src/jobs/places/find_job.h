// Finds a job by the word that a user wrote, wherever the job runs. No other file knows all places.
#pragma once

#include "jobs/job.h"
#include "jobs/job_book.h"
#include "jobs/places/job_refresh.h"

#include <memory>
#include <string>

namespace lockstep::jobs::places {

// Finds a job by id, name, beginning of an id, Slurm's number, or pid-N of a run on this machine.
// Slurm's number may be that of a job that Lockstep did not submit, or of an earlier run of a
// chain. Errors as in JobBook::find().
Result<KnownJob> find_job(const JobBook& book, const std::string& word,
                          const PlacesWorld& world = {});

// The rule for a name of several running jobs: take the newest, or refuse the name.
enum class Several { newest, refuse };
// Like find_job(), but prefers a running job of that name over a newer, ended job.
Result<KnownJob> find_running_job(const JobBook& book, const std::string& word, Several several,
                                  const PlacesWorld& world = {});

std::unique_ptr<Job> open_job(KnownJob record);

}  // namespace lockstep::jobs::places
