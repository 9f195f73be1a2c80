#include "jobs/places/find_job.h"

#include "base/date_text.h"
#include "base/text.h"
#include "hosts/registry.h"
#include "jobs/here/local_job.h"
#include "jobs/job_rows.h"
#include "jobs/on_hosts/hosts_job.h"
#include "jobs/on_slurm/login_job.h"
#include "jobs/on_slurm/slurm_follow.h"
#include "jobs/on_slurm/slurm_job.h"
#include "jobs/rented/owned_job.h"
#include "jobs/rented/rented_job.h"
#include "slurm/job_report.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

namespace lockstep::jobs::places {

namespace {

Failure no_run(const std::string& word) {
  return fail(Errc::not_found,
              fmt::format("there is no job '{}' of this user on this machine", printable(word)),
              "a run that has ended leaves no record unless it has --events or --report");
}

// Returns whether the job book knows what is meant. Numbers are Slurm's: that one or more ids begin
// with the number says little.
bool is_certain(const Result<KnownJob>& found, const std::string& word) {
  const bool is_number = slurm::is_job_id(word);
  if (found) return !is_number || !on_slurm::begins_only(*found, word);
  return found.error().code != Errc::not_found &&
         !(is_number && found.error().code == Errc::invalid_input);
}

// Finds a job that is in no book: a run on this machine, or a job whose rental another host owns.
// Another job of that name must not be taken for a job in an unreadable journal. Slurm's numbers
// and pid-N are no names.
Result<std::optional<KnownJob>> find_unbooked(const std::string& word, const PlacesWorld& world) {
  if (auto run = here::find_local_job(word)) return run;
  const bool is_name =
      hosts::check_cluster_name(word) && !slurm::is_job_id(word) && !here::is_local_id(word);
  const rented::Courses courses = is_name ? world.courses() : world.known_courses();
  LOCKSTEP_TRY_ASSIGN(const auto owned, rented::find_owned(word, courses));
  return owned ? std::optional(rented::known_owned(*owned)) : std::nullopt;
}

}  // namespace

Result<KnownJob> find_job(const JobBook& book, const std::string& word, const PlacesWorld& world) {
  LOCKSTEP_TRY_ASSIGN(auto unbooked, find_unbooked(word, world));
  if (unbooked) return std::move(*unbooked);
  auto job = on_slurm::find_job(book, word);
  if (is_certain(job, word)) return job;
  if (slurm::is_job_id(word)) {
    auto there = on_slurm::find_slurm_job(word, world.slurm);
    return there || (!job && job.error().code == Errc::not_found) ? std::move(there)
                                                                  : std::move(job);
  }
  LOCKSTEP_TRY_ASSIGN(auto run, here::find_by_script(word));
  if (run) return std::move(*run);
  if (here::is_local_id(word)) return no_run(word);
  return job;
}

Result<KnownJob> find_running_job(const JobBook& book, const std::string& word, Several several,
                                  const PlacesWorld& world) {
  LOCKSTEP_TRY_ASSIGN(auto unbooked, find_unbooked(word, world));
  if (unbooked) return std::move(*unbooked);
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

Result<KnownJob> find_job_to_explain(const JobBook& book, const std::string& word,
                                     const PlacesWorld& world) {
  LOCKSTEP_TRY_ASSIGN(auto unbooked, find_unbooked(word, world));
  if (unbooked) return std::move(*unbooked);
  auto job = on_slurm::find_job(book, word);
  const bool is_number = slurm::is_job_id(word);
  const bool is_exact =
      job && (!is_number || job->id == word ||
              (on_slurm::slurm_place(*job) && !on_slurm::begins_only(*job, word)));
  if (is_exact || (!job && is_certain(job, word))) return job;
  // A job of plain sbatch is not in the job book. Slurm may still know the number.
  if (is_number) return on_slurm::unrecorded_job(word);
  LOCKSTEP_TRY_ASSIGN(auto run, here::find_by_script(word));
  if (run) return std::move(*run);
  if (here::is_local_id(word)) return no_run(word);
  return fail(Errc::invalid_input,
              fmt::format("'{}' is neither a Slurm job id nor a job in the list of lockstep jobs",
                          printable(word)),
              "name a job of that list, a script that runs on this machine, or a Slurm job by its "
              "number; lockstep why --from FILE explains a run that has ended, from its --report");
}

Result<std::optional<KnownJob>> find_by_id(const JobBook& book, const std::string& word,
                                           const PlacesWorld& world) {
  const bool is_number = slurm::is_job_id(word);
  auto found = find_job(book, word, world);
  if (found && (found->id == word || (is_number && on_slurm::slurm_place(*found) &&
                                      !on_slurm::begins_only(*found, word))))
    return std::optional(std::move(*found));
  const bool is_away = found || found.error().code == Errc::not_found;
  if (is_away && !is_number && !here::is_local_id(word)) return std::optional<KnownJob>();
  if (!found) return Failure(found.error());
  return fail(Errc::not_found, fmt::format("{} is but the beginning of a job's id", word),
              "write the whole id: " + found->id);
}

Result<std::optional<RowOfJob>> find_row_of_job(const JobBook& book, const std::string& word,
                                                const std::string& verb, const PlacesWorld& world) {
  const auto named = read_row_word(word);
  if (!named) return std::optional<RowOfJob>();
  LOCKSTEP_TRY_ASSIGN(auto job, find_job(book, named->job, world));
  // The record of such a job has no rows.
  if (const std::string owner = open_job(job, world)->facts().owner; !owner.empty())
    return fail(Errc::invalid_input,
                fmt::format("only {} has the rows of {}", printable(owner), job.id),
                fmt::format("on {}: lockstep {} '{}[{}]'", printable(owner), verb, job.id,
                            printable(named->row)));
  LOCKSTEP_TRY_ASSIGN(const auto sweep, sweep_of(job));
  if (!sweep)
    return fail(Errc::invalid_input, "job " + job.id + " is not a sweep, and has no rows",
                fmt::format("lockstep {} {} is about the whole job", verb, job.id));
  LOCKSTEP_TRY_ASSIGN(const std::size_t row, find_row(*sweep, named->row));
  return std::optional(RowOfJob{.job = std::move(job), .row = row});
}

std::unique_ptr<Job> open_job(KnownJob record, const PlacesWorld& world) {
  if (here::is_local_job(record)) return std::make_unique<here::LocalJob>(std::move(record));
  auto place = on_slurm::slurm_place(record);
  // A record with nodes names the login host where the job was submitted.
  if (place && record.nodes.empty())
    return std::make_unique<on_slurm::SlurmJob>(std::move(record), std::move(*place));
  if (place) return std::make_unique<on_slurm::LoginJob>(std::move(record), std::move(*place));
  const auto courses = world.known_courses();
  if (auto course = rented::owned_course_of(record, courses))
    return std::make_unique<rented::OwnedJob>(std::move(record), std::move(*course), world.owned);
  const auto on_its_hosts = [](KnownJob job) -> std::unique_ptr<Job> {
    return std::make_unique<on_hosts::HostsJob>(std::move(job));
  };
  // The record alone does not say that the hosts are rented: only the journal of rentals does.
  if (rented::course_of(record, courses) == nullptr) return on_its_hosts(std::move(record));
  return std::make_unique<rented::RentedJob>(
      std::move(record), rented::RentedWorld{.attempt = on_its_hosts,
                                             .courses = [world] { return world.known_courses(); }});
}

}  // namespace lockstep::jobs::places
