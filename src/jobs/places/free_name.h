// Gives a job a name that no other running job has.
#pragma once

#include "jobs/job_book.h"

#include <string>

namespace lockstep::jobs::places {

// Returns the name, or the name with a number behind ("train.py-2") if a job of that name has not
// ended. Asks the hosts of such jobs first, because the journal's states may be old.
Result<std::string> free_name(const JobBook& book, const std::string& name);

}  // namespace lockstep::jobs::places
