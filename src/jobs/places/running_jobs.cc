#include "jobs/places/running_jobs.h"

#include "jobs/here/local_job.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace lockstep::jobs::places {
namespace {

constexpr std::size_t kMostListed = 100;

}  // namespace

Result<std::vector<KnownJob>> running_jobs(const JobBook& book, const PlacesWorld& world) {
  LOCKSTEP_TRY_ASSIGN(auto jobs, book.list(kMostListed));
  const auto is_over = [](const KnownJob& job) { return job.is_over(); };
  std::erase_if(jobs, is_over);
  LOCKSTEP_TRY(refresh_jobs(book, jobs, world));
  std::erase_if(jobs, is_over);
  std::vector<KnownJob> all;
  for (const here::LocalRun& run : here::local_runs())
    all.push_back(here::known_job(run));
  std::move(jobs.begin(), jobs.end(), std::back_inserter(all));
  // Not asked: their hosts may be silent for a minute, and the end of each is still to be told.
  auto owned = owned_jobs(world);
  std::move(owned.begin(), owned.end(), std::back_inserter(all));
  return all;
}

}  // namespace lockstep::jobs::places
