#include "jobs/places/find_job.h"

#include "base/date_text.h"
#include "base/text.h"
#include "jobs/here/local_job.h"
#include "jobs/on_hosts/hosts_job.h"
#include "jobs/on_slurm/slurm_follow.h"
#include "jobs/on_slurm/slurm_job.h"
#include "slurm/job_report.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

namespace lockstep::jobs::places {

Result<KnownJob> find_job(const JobBook& book, const std::string& word, const PlacesWorld& world) {
  if (auto run = here::find_local_job(word)) return std::move(*run);
  auto job = on_slurm::find_job(book, word);
  if (!job && job.error().code == Errc::not_found && slurm::is_job_id(word))
    return on_slurm::find_slurm_job(word, world.slurm);
  return job;
}

Result<KnownJob> find_running_job(const JobBook& book, const std::string& word, Several several,
                                  const PlacesWorld& world) {
  LOCKSTEP_TRY_ASSIGN(KnownJob newest, find_job(book, word, world));
  if (newest.id == word || newest.name != word) return newest;
  LOCKSTEP_TRY_ASSIGN(auto jobs, book.going_on(word));
  const bool newest_alone = jobs.size() == 1 && jobs.front().id == newest.id;
  // The journal's states may be old. Asking takes time, so ask only if the answer matters.
  if (!newest_alone) LOCKSTEP_TRY(refresh_jobs(book, jobs, world));
  std::erase_if(jobs, [](const KnownJob& job) { return job.is_over(); });
  if (jobs.empty()) return newest;
  if (jobs.size() == 1) return std::move(jobs.front());
  if (several == Several::newest && jobs.front().id == newest.id) return newest;
  std::vector<std::string> ids;
  for (const KnownJob& job : jobs)
    ids.push_back(fmt::format("{} ({} on {}, {})", job.id, state_name(job.status.state), job.place,
                              date_text(job.created_ms)));
  return fail(
      Errc::invalid_input,
      fmt::format("{} jobs are named {}: {}", jobs.size(), printable(word), join(ids, ", ")),
      "name one by its id");
}

std::unique_ptr<Job> open_job(KnownJob record) {
  if (here::is_local_job(record)) return std::make_unique<here::LocalJob>(std::move(record));
  if (auto place = on_slurm::slurm_place_here(record))
    return std::make_unique<on_slurm::SlurmJob>(std::move(record), std::move(*place));
  return std::make_unique<on_hosts::HostsJob>(std::move(record));
}

}  // namespace lockstep::jobs::places
