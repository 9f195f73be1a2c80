#include "jobs/rented/rented_job.h"

#include "cloud/journal.h"
#include "io/own_folders.h"
#include "jobs/rented/course_process.h"
#include "jobs/rented/course_why.h"
#include "proc/signals.h"
#include "rent/job_claim.h"

#include <fmt/core.h>

#include <signal.h>

#include <algorithm>
#include <utility>

namespace lockstep::jobs::rented {
namespace {

using Stage = cloud::RentedJob::Stage;

constexpr std::chrono::milliseconds kLook{200};
// The guard starts another process for the course within this time, unless it fails to.
constexpr int kLooksAlone = 300;

Failure not_followed(const cloud::RentedJob& course) {
  return fail(Errc::unavailable,
              fmt::format("no process follows the job of '{}' now", course.cluster),
              "lockstep cost starts its guard again; " + rent::follow_log(course.cluster) +
                  " has its last words");
}

// The error of a course without an attempt to follow now.
Failure no_output(const cloud::RentedJob& course, const std::string& id) {
  if (course.goes_on() && !course.job.empty())
    return fail(Errc::unavailable, "the job is being started",
                fmt::format("lockstep logs -f {} waits for it", id));
  return fail(Errc::unavailable,
              fmt::format("the machines of '{}' are not there now", course.cluster),
              fmt::format("lockstep logs {} shows their output", course.cluster));
}

// Returns whether the attempt was lost, or its machines are being terminated. Opens the journal, so
// any thread may call.
bool has_passed(const RentedWorld& world, const KnownJob& record, int losses) {
  const auto courses = world.courses();
  const cloud::RentedJob* const course = course_of(record, courses);
  return course == nullptr || course->losses != losses || !course->goes_on();
}

}  // namespace

std::optional<cloud::Rental> RentedWorld::rental_here(const cloud::RentedJob& course) {
  auto journal = cloud::Journal::open(io::state_folder());
  auto rentals = journal ? journal->since(course.began_ms) : Failure(journal.error());
  for (std::size_t i = 0; rentals && i < rentals->size(); ++i)
    if ((*rentals)[i].id == course.rental) return std::move((*rentals)[i]);
  return std::nullopt;
}

Result<KnownJob> RentedWorld::find_here(const std::string& id) {
  LOCKSTEP_TRY_ASSIGN(const JobBook book, JobBook::open(io::state_folder()));
  return book.find(id);
}

bool RentedWorld::is_followed_here(const std::string& rental) {
  return rent::job_is_claimed(rental);
}

bool RentedWorld::interrupt_here(const std::string& rental) {
  auto journal = cloud::Journal::open(io::state_folder());
  return journal && interrupt_course(*journal, rental);
}

Status RentedWorld::pause_here(std::chrono::milliseconds time) {
  const int signal = proc::take_stop_signal(time);
  if (signal == 0) return {};
  return Failure(Error{Errc::canceled, "stopped by a signal", {}, signal});
}

std::optional<cloud::RentedJob> RentedJob::course() const {
  const auto courses = world_.courses();
  const cloud::RentedJob* const found = course_of(record_, courses);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

// Reads the job's record anew: a command may ask for hours, while the job begins again on other
// machines. nullopt: the machines know the state.
std::optional<JobStatus> RentedJob::status_in_course() {
  if (auto found = world_.find(record_.id)) record_ = std::move(*found);
  const auto courses = world_.courses();
  const cloud::RentedJob* const course = course_of(record_, courses);
  // Some hosts of the next attempt may not know the job yet, and would call the job lost.
  if (course != nullptr && course->losses > 0 && record_.status.state == JobState::starting)
    return JobStatus{.state = JobState::starting};
  const auto state = state_in_course(record_, courses);
  if (!state) return std::nullopt;
  return JobStatus{.state = *state};
}

Result<JobStatus> RentedJob::status() {
  if (auto known = status_in_course()) return std::move(*known);
  const auto course = this->course();
  // The machines of a course that has ended are gone.
  if ((!course || !course->goes_on()) && record_.is_over()) return record_.status;
  return attempt()->status();
}

bool RentedJob::may_begin_again() const {
  const auto course = this->course();
  return course && course->goes_on() && world_.is_followed(course->rental);
}

// Never ask machines that are gone or about to be terminated: a silent machine costs a minute.
Result<Explanation> RentedJob::why() {
  const auto course = this->course();
  if (!course) return attempt()->why();
  const auto known = status_in_course();
  const std::string advice =
      fmt::format("lockstep logs {} shows what the course of the job has said", course->cluster);
  auto said = known ? explain_job(record_, *known, nullptr,
                                  known->state == JobState::lost ? advice : std::string())
                    : attempt()->why();
  if (!said) return said;
  return with_course(std::move(*said), *course, world_.rental(*course));
}

Result<std::vector<looks::Answer>> RentedJob::looks(const looks::Question& question) {
  if (status_in_course()) return std::vector<looks::Answer>();
  return attempt()->looks(question);
}

std::vector<nlohmann::json> RentedJob::row_reports(std::size_t row, const std::string& host) {
  return attempt()->row_reports(row, host);
}

Result<std::vector<looks::Answer>> RentedJob::row_looks(std::size_t row, const std::string& host) {
  return attempt()->row_looks(row, host);
}

Result<std::vector<looks::NodeRows>> RentedJob::ranks() {
  if (status_in_course()) return std::vector<looks::NodeRows>();
  return attempt()->ranks();
}

Result<std::vector<status::EventAnswer>> RentedJob::events(std::int64_t after) {
  if (status_in_course()) return std::vector<status::EventAnswer>();
  return attempt()->events(after);
}

Result<std::vector<PageThere>> RentedJob::page(int node) {
  if (status_in_course()) return std::vector<PageThere>();
  return attempt()->page(node);
}

// A profile belongs to one attempt. Machines of a later attempt do not know the profile.
Result<ProfileAnswers> RentedJob::profile(const ProfileRequest& request) {
  if (status_in_course()) return ProfileAnswers();
  return attempt()->profile(request);
}

Status RentedJob::bring_trace(const TraceThere& trace, const std::string& to,
                              const std::function<Status()>& meanwhile) {
  return attempt()->bring_trace(trace, to, meanwhile);
}

// Returns whether there is an attempt to follow that was not followed before. losses: before the
// attempt that was followed last.
Result<bool> RentedJob::next_attempt(const cloud::RentedJob& course, std::optional<int>& losses) {
  if (!course.goes_on() || course.job.empty() || losses == course.losses) return false;
  auto found = world_.find(record_.id);
  // The record of a first attempt is removed if the attempt cannot start.
  if (!found && found.error().code == Errc::not_found) return false;
  LOCKSTEP_TRY_ASSIGN(record_, std::move(found));
  // Some hosts may not know the job yet.
  if (record_.status.state == JobState::starting) return false;
  losses = course.losses;
  return true;
}

Result<Followed> RentedJob::follow(const FollowOptions& options) {
  FollowOptions mine = options;
  Followed last;
  std::optional<cloud::RentedJob> course;  // as last seen
  std::optional<int> losses;
  for (int alone = 0; alone < kLooksAlone;) {
    const auto now = this->course();
    if (!now && !course) return attempt()->follow(options);
    if (now) course = now;
    if (options.to_end && (!now || now->stage == Stage::ended)) {
      last.status = end(last, course);
      last.gone = false;
      return last;
    }
    LOCKSTEP_TRY_ASSIGN(const bool begun, next_attempt(*now, losses));
    if (begun) {
      mine.gone = [this, begun_after = *losses] {
        return has_passed(world_, record_, begun_after);
      };
      LOCKSTEP_TRY_ASSIGN(last, attempt()->follow(mine));
      mine.lines.reset();  // the user has seen no line of the next attempt
      if (last.left || !options.to_end) return last;
    }
    if (!options.to_end) return no_output(*course, record_.id);
    alone = world_.is_followed(now->rental) ? 0 : alone + 1;
    if (const Status waited = world_.pause(kLook); !waited) {
      if (waited.error().code != Errc::canceled) return Failure(waited.error());
      last.left = true;
      last.signal = waited.error().sys;
      return last;
    }
  }
  return not_followed(*course);
}

// Returns the end of the job. The course knows the code if the machines were lost, or if the
// outputs are not here.
JobStatus RentedJob::end(const Followed& last,
                         const std::optional<cloud::RentedJob>& course) const {
  const auto kept = world_.find(record_.id);
  JobStatus status = last.status.is_over() && last.status.code ? last.status
                     : kept                                    ? kept->status
                                                               : record_.status;
  if (course->goes_on()) return status.is_over() ? status : JobStatus{.state = JobState::lost};
  if (status.is_over() && status.code == course->code) return status;
  return {.state = course->code == 0 ? JobState::succeeded : JobState::failed,
          .code = course->code,
          .ended_ms = status.ended_ms};
}

// Without machines only the course can cancel the job.
Result<JobStatus> RentedJob::cancel() {
  auto now = course();
  if (!now || !now->goes_on() || !now->job.empty()) return attempt()->cancel();
  if (!world_.interrupt(now->rental)) return not_followed(*now);
  int code = 128 + SIGINT;
  for (int looks = 0; now && now->goes_on(); ++looks) {
    if (looks == kLooksAlone) return not_followed(*now);
    LOCKSTEP_TRY(world_.pause(kLook));
    now = course();
    if (now && !now->goes_on()) code = now->code;
  }
  return JobStatus{.state = JobState::canceled, .code = code, .canceled = true, .by_person = true};
}

Result<Resumed> RentedJob::resume(const std::vector<std::string>& env) {
  const auto now = course();
  if (!now || !now->goes_on()) return attempt()->resume(env);
  return fail(Errc::invalid_input,
              fmt::format("the course of the job on '{}' begins it again by itself", now->cluster),
              fmt::format("lockstep why {} shows the state of the job", record_.id));
}

}  // namespace lockstep::jobs::rented
