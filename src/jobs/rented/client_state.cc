#include "jobs/rented/client_state.h"

#include "io/own_folders.h"
#include "rent/job_claim.h"

#include <algorithm>
#include <utility>

namespace lockstep::jobs::rented {
namespace {

using RentedStage = cloud::RentedJob::Stage;

Result<bool> has_open_rental(cloud::Journal& journal, const cloud::RentedJob& job) {
  LOCKSTEP_TRY_ASSIGN(const auto open, journal.open_rentals());
  return std::any_of(open.begin(), open.end(),
                     [&](const auto& rental) { return rental.id == job.rental; });
}

Status note_unseen_end(cloud::Journal& journal, cloud::RentedJob& job) {
  LOCKSTEP_TRY_ASSIGN(const bool rented, has_open_rental(journal, job));
  if (rented || job.stage == RentedStage::ended || rent::job_is_claimed(job.rental)) return {};
  cloud::end_unseen(job, "its machines were terminated before the end of the job was seen");
  job.stage = RentedStage::ended;
  return journal.note_job(job);
}

// rented: machines of the job may exist.
JobState state_here(const cloud::RentedJob& job, bool rented) {
  if (job.stage == RentedStage::lost) return JobState::restarting;
  if (job.stage == RentedStage::ending || (job.stage == RentedStage::ended && rented))
    return JobState::saving;
  if (job.goes_on()) {
    const auto known = started_job(job);
    if (!known) return JobState::starting;
    return known->is_over() && !job.back.empty() ? JobState::saving : JobState::running;
  }
  return job.code == 0 ? JobState::succeeded : JobState::failed;
}

}  // namespace

std::optional<KnownJob> started_job(const std::optional<cloud::RentedJob>& course) {
  if (!course || course->job.empty()) return std::nullopt;
  const auto book = JobBook::open(io::state_folder());
  auto known = book ? book->find(course->job) : Failure(book.error());
  if (!known || known->status.state == JobState::starting) return std::nullopt;
  return std::move(*known);
}

Result<std::optional<cloud::RentedJob>> job_of_client(cloud::Journal& journal,
                                                      const std::string& rental) {
  LOCKSTEP_TRY_ASSIGN(auto jobs, journal.jobs());
  for (cloud::RentedJob& job : jobs) {
    if (job.rental != rental || job.client.empty()) continue;
    LOCKSTEP_TRY(note_unseen_end(journal, job));
    return std::optional(std::move(job));
  }
  return std::optional<cloud::RentedJob>();
}

Result<OwnedState> state_for_client(cloud::Journal& journal, const std::string& rental) {
  LOCKSTEP_TRY_ASSIGN(const auto job, job_of_client(journal, rental));
  if (!job) return OwnedState{};
  LOCKSTEP_TRY_ASSIGN(const bool rented, has_open_rental(journal, *job));
  // The client forgets an ended job. Machines that are held, or could not be terminated, cost
  // money, and only `lockstep down` of the client ends them.
  const bool ended =
      job->stage == RentedStage::ended && !rented && !rent::job_is_claimed(job->rental);
  return OwnedState{.known = true,
                    .ended = ended,
                    .state = std::string(state_name(state_here(*job, rented))),
                    .code = job->code,
                    .note = job->note,
                    .job = job->job};
}

}  // namespace lockstep::jobs::rented
