// Asks the hosts of jobs for the jobs' states, all at the same time, and writes them into the
// journal. Slurm and the records of rented jobs answer for theirs.
#pragma once

#include "base/error.h"
#include "hosts/command_run.h"
#include "jobs/job_book.h"
#include "jobs/on_slurm/slurm_world.h"
#include "jobs/rented/owned_end.h"
#include "jobs/rented/rented_state.h"

#include <functional>
#include <vector>

namespace lockstep::jobs::places {

// How hosts, Slurm, the records of rented jobs, and the hosts that own rentals are asked. A test
// gives stand-ins.
struct PlacesWorld {
  hosts::RunCommand run = hosts::over_links();
  on_slurm::SlurmWorld slurm = {};
  std::function<Result<std::vector<cloud::RentedJob>>()> courses = rented::read_courses;
  rented::OwnedWorld owned = {};

  // For views that may miss a course: an unreadable journal has no records.
  std::vector<cloud::RentedJob> known_courses() const {
    return courses().value_or(std::vector<cloud::RentedJob>());
  }
};
// Returns the hosts, Slurm and journal of this user: a default argument that costs its callers a
// call, and not the making of a world.
const PlacesWorld& real_places();

// Returns the jobs of which another host owns the rental, the newest first. No book has them.
std::vector<KnownJob> owned_jobs(const PlacesWorld& world = real_places());

// Updates the unended jobs, and those of owned_jobs(). A warning names each host without an answer
// within 5 s. A job keeps its state and gets away_ms if no host knows about the job.
Status refresh_jobs(const jobs::JobBook& book, std::vector<jobs::KnownJob>& jobs,
                    const PlacesWorld& world = real_places());

}  // namespace lockstep::jobs::places
