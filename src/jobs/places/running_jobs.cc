#include "jobs/places/running_jobs.h"

#include "jobs/here/local_job.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace lockstep::jobs::places {
namespace {

constexpr std::size_t kMostListed = 100;
constexpr std::size_t kMostOnMachines = 200;

// Asks the hosts whether the job has ended, or is not known there.
Result<bool> has_ended(const JobBook& book, Job& job) {
  const auto status = job.status();
  if (!status && status.error().code == Errc::canceled) return Failure(status.error());
  const auto silent = [](const NodeStatus& node) { return !node.state; };
  if (!status || std::any_of(status->nodes.begin(), status->nodes.end(), silent)) return false;
  if (!status->is_over()) return false;
  LOCKSTEP_TRY(book.note(job.record().id, *status));
  return true;
}

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

Result<std::vector<std::string>> jobs_on_machines(const JobBook& book, const std::string& cluster,
                                                  const std::function<bool()>& alive,
                                                  const OpenJob& open) {
  std::vector<std::string> ids;
  auto jobs = book.list(kMostOnMachines).value_or(std::vector<KnownJob>());
  std::erase_if(jobs, [&](const KnownJob& job) { return job.place != cluster || job.is_over(); });
  if (jobs.empty() || !alive()) return ids;
  for (KnownJob& record : jobs) {
    const auto job = open(std::move(record));
    LOCKSTEP_TRY_ASSIGN(const bool ended, has_ended(book, *job));
    if (!ended) ids.push_back(job->record().id);
  }
  return ids;
}

}  // namespace lockstep::jobs::places
