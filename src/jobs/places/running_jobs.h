// The jobs that run now, for a command without a job's name, and for a command that ends machines.
#pragma once

#include "jobs/job.h"
#include "jobs/places/job_refresh.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::jobs::places {

// Returns the runs on this machine, the jobs of the book that have not ended, the newest first, and
// those of owned_jobs(). Asks the hosts of the book's jobs, because the states there may be old.
Result<std::vector<KnownJob>> running_jobs(const JobBook& book,
                                           const PlacesWorld& world = real_places());

using OpenJob = std::function<std::unique_ptr<Job>(KnownJob record)>;
// Returns the ids of the book's jobs that may still run on the machines of a cluster, by what the
// hosts say: nothing tells this machine of the end of a detached job. A job of a silent machine may
// run. alive: returns true if a machine may live; called only if the book has such jobs. canceled:
// the user has stopped the questions.
Result<std::vector<std::string>> jobs_on_machines(const JobBook& book, const std::string& cluster,
                                                  const std::function<bool()>& alive,
                                                  const OpenJob& open);

}  // namespace lockstep::jobs::places
