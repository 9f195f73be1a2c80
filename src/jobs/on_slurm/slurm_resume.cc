#include "jobs/on_slurm/slurm_resume.h"

#include "base/text.h"
#include "io/fd.h"
#include "io/own_folders.h"
#include "jobs/job_book.h"
#include "jobs/on_slurm/array_orders.h"
#include "jobs/on_slurm/array_submit.h"
#include "jobs/on_slurm/slurm_once.h"
#include "jobs/on_slurm/slurm_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

namespace lockstep::jobs::on_slurm {
namespace {

constexpr int kMostTries = 10'000;

// Slurm keeps the variables of the first submission with that job only. Adds those whose value is
// kept.
Status check_variables(const KnownJob& job, const SlurmPlace& place,
                       std::vector<std::string>& env) {
  LOCKSTEP_TRY_ASSIGN(const std::string names,
                      io::read_file(slurm::JobFolder(place.folder).at(kVariablesFile)));
  for (const std::string& name : split(names, '\n')) {
    if (name.find('=') != name.npos) {
      env.push_back(name);
      continue;
    }
    const bool given = std::any_of(env.begin(), env.end(), [&](const std::string& each) {
      return each.starts_with(name + "=");
    });
    if (!name.empty() && !given)
      return fail(Errc::invalid_input,
                  fmt::format("the rows of job {} had the variable {}, whose value is kept nowhere",
                              job.id, printable(name, 100)),
                  fmt::format("give --env {}=VALUE again", printable(name, 100)));
  }
  return {};
}

// The old folders of rows, out of the way of a new try. Puts them back unless kept.
class OldTries {
 public:
  OldTries() = default;
  OldTries(const OldTries&) = delete;
  OldTries& operator=(const OldTries&) = delete;
  ~OldTries() {
    std::error_code ignored;
    for (const auto& [from, to] : moved_)
      std::filesystem::rename(to, from, ignored);
  }

  Status move(const std::string& folder) {
    std::error_code error;
    if (!std::filesystem::exists(folder, error)) return {};
    for (int number = 1; number < kMostTries; ++number) {
      const std::string to = fmt::format("{}.try{}", folder, number);
      if (std::filesystem::exists(to, error)) continue;
      std::filesystem::rename(folder, to, error);
      if (error) return fail_sys("rename " + folder, error.value());
      moved_.emplace_back(folder, to);
      return {};
    }
    return fail(Errc::invalid_input, folder + " has too many earlier tries");
  }
  void keep() { moved_.clear(); }

 private:
  std::vector<std::pair<std::string, std::string>> moved_;
};

Result<std::vector<std::size_t>> rows_to_run(const KnownJob& job, const JobSweep& sweep,
                                             const SlurmPlace& place, const SlurmWorld& world) {
  LOCKSTEP_TRY_ASSIGN(const auto rows, ask_slurm_rows(job, sweep, place, world));
  if (!status_of_rows(rows).is_over())
    return fail(Errc::invalid_input, "job " + job.id + " has not ended",
                "lockstep wait waits for its end; then lockstep resume runs the failed rows again");
  std::vector<std::size_t> undone;
  for (const SlurmRow& row : rows)
    if (row.status.state != JobState::succeeded) undone.push_back(row.row);
  if (undone.empty()) return fail(Errc::invalid_input, "all rows of job " + job.id + " are done");
  return undone;
}

// An earlier `lockstep resume` may have been cut off between sbatch and its record. Returns the
// arrays of this job that Slurm has and the record does not, and puts their numbers into `place`.
std::vector<std::string> find_unrecorded(SlurmPlace& place, SlurmWorld world) {
  std::vector<std::string> jobs = place.jobs();
  std::vector<std::string> found;
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    const auto newest =
        queued_job(slurm::JobFolder(place.folder), world, place.first_row_to_tell(index));
    // An sbatch may be under way. The first look has waited for it.
    world.sleep = [](std::chrono::milliseconds) {};
    if (!newest || parse_int(*newest).value_or(0) <= parse_int(jobs[index]).value_or(0)) continue;
    jobs[index] = *newest;
    found.push_back(*newest);
  }
  place.set_jobs(std::move(jobs));
  return found;
}

// Submits the arrays that have these rows, and puts their numbers into `place`.
Result<std::vector<std::string>> submit_again(SlurmPlace& place,
                                              const std::vector<std::size_t>& rows,
                                              std::vector<std::string> env,
                                              const SlurmWorld& world) {
  std::vector<std::string> jobs = place.jobs();
  LOCKSTEP_TRY_ASSIGN(const auto arrays, arrays_of(rows, place.at_once, place.spread));
  // The words of the first submission again: SBATCH_* variables of this shell override the lines of
  // the script.
  LOCKSTEP_TRY_ASSIGN(auto numbers,
                      submit_arrays({.sbatch = {.settings = place.settings,
                                                .arguments = place.arguments,
                                                .env = std::move(env),
                                                .working = place.working},
                                     .arrays = arrays,
                                     .several = jobs.size() > 1,
                                     .one_at_a_time = must_chain(rows.size(), place.at_once),
                                     .earlier = jobs},
                                    slurm::JobFolder(place.folder), world));
  for (std::size_t i = 0; i < arrays.size(); ++i)
    jobs[arrays[i].index] = numbers[i];
  place.set_jobs(std::move(jobs));
  return numbers;
}

}  // namespace

Result<Resumed> resume_slurm_rows(const KnownJob& job, const JobSweep& sweep, SlurmPlace place,
                                  std::vector<std::string> env, const SlurmWorld& world) {
  // Two commands must not submit the same rows.
  LOCKSTEP_TRY_ASSIGN(const SubmitLock lock, SubmitLock::take());
  LOCKSTEP_TRY_ASSIGN(const JobBook book, JobBook::open(io::state_folder()));
  // Another command may have submitted rows since the caller read the record.
  LOCKSTEP_TRY_ASSIGN(const KnownJob now, book.find(job.id));
  if (const auto known = slurm_place(now)) place = *known;
  if (const auto found = find_unrecorded(place, world); !found.empty()) {
    // They may be held: the command was cut off before it could release them. Arrays that have
    // ended cannot be released.
    const Status released = release_arrays(found, place.settings, world);
    if (!released && released.error().code == Errc::unavailable) return Failure(released.error());
    LOCKSTEP_TRY(book.note_plan(now.id, plan_text(place, sweep.table, sweep.rows)));
    // The recorded end is that of the earlier arrays.
    LOCKSTEP_TRY(book.note(now.id, JobState::queued));
  }
  LOCKSTEP_TRY_ASSIGN(const auto undone, rows_to_run(now, sweep, place, world));
  LOCKSTEP_TRY(check_variables(now, place, env));
  const slurm::JobFolder folder(place.folder);
  OldTries old;
  for (const std::size_t row : undone)
    LOCKSTEP_TRY(old.move(folder.row(row)));
  const auto numbers = submit_again(place, undone, std::move(env), world);
  // canceled: Slurm may have the rows, which then need their folders' places.
  if (numbers || numbers.error().code == Errc::canceled) old.keep();
  if (!numbers) return Failure(numbers.error());
  KnownJob again = now;
  again.plan = plan_text(place, sweep.table, sweep.rows);
  LOCKSTEP_TRY(note_submitted(folder, again));
  LOCKSTEP_TRY(book.note_plan(again.id, again.plan));
  LOCKSTEP_TRY(book.note(again.id, JobState::queued));
  if (numbers->size() > 1) LOCKSTEP_TRY(release_arrays(*numbers, place.settings, world));
  return Resumed{.nodes = {"slurm as job " + join(*numbers, ", ")}, .ahead = {}};
}

}  // namespace lockstep::jobs::on_slurm
