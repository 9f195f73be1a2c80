// Answers a client about its job, from the records on the host that owns the rental.
#pragma once

#include "base/error.h"
#include "cloud/journal.h"
#include "cloud/rented_job.h"
#include "jobs/job_book.h"
#include "jobs/rented/owner_talk.h"

#include <optional>
#include <string>

namespace lockstep::jobs::rented {

// Returns the job's record in the book if the job runs, is queued, or has ended. nullopt: the
// job has not begun on its machines.
std::optional<KnownJob> started_job(const std::optional<cloud::RentedJob>& course);

// Returns the job of a client by the id of its rental. Notes the end of a job without machines and
// without a process, as after a kill of its course. nullopt: no client has such a job here.
Result<std::optional<cloud::RentedJob>> job_of_client(cloud::Journal& journal,
                                                      const std::string& rental);

// Returns what the client is told.
Result<OwnedState> state_for_client(cloud::Journal& journal, const std::string& rental);

}  // namespace lockstep::jobs::rented
