// From the word that a user wrote to a job, wherever it runs. The one file that knows which places
// there are.
#pragma once

#include "jobs/job.h"
#include "jobs/job_book.h"

#include <memory>
#include <string>

namespace lockstep::jobs::places {

// By id, name, Slurm's number (also of a job that Lockstep did not submit, and of an earlier run of
// a chain), the beginning of an id, or pid-N of a run on this machine. not_found, invalid_input:
// as JobBook::find().
Result<KnownJob> find_job(const JobBook& book, const std::string& word);

// The rule for a name that several running jobs have: take the newest, or refuse the name.
enum class Several { newest, refuse };
// Like find_job(), and of a name the job that runs, even if a newer job of that name has ended.
Result<KnownJob> find_running_job(const JobBook& book, const std::string& word, Several several);

std::unique_ptr<Job> open_job(KnownJob record);

}  // namespace lockstep::jobs::places
