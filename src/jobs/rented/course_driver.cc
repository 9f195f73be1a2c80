#include "jobs/rented/course_driver.h"

#include "base/date_text.h"
#include "base/text.h"
#include "host/identity.h"

#include <fmt/core.h>

#include <signal.h>

#include <algorithm>
#include <utility>

namespace lockstep::jobs::rented {
namespace {

constexpr int kLossesToOnDemand = 3;  // losses of spot machines, then --spot=prefer takes on-demand
// Losses of any kind, after which the loss of an on-demand machine ends the job. On-demand machines
// rarely go by themselves, so the job may be the reason.
constexpr int kMostLosses = 5;

using Stage = cloud::RentedJob::Stage;

CourseRecord course_record(const cloud::RentedJob& record) {
  return {.working = record.stage == Stage::working,
          .ending = record.stage == Stage::ending,
          .started = !record.job.empty(),
          .succeeded = record.stage == Stage::working && record.succeeded,
          .code = record.code};
}

// Returns the exit code of an error. Never 2, which promises that nothing was rented.
int code_of_error(const Error& error) {
  return error.code == Errc::canceled && error.sys > 0 ? 128 + error.sys : 1;
}

}  // namespace

std::optional<Error> lost_variables(const std::vector<std::string>& secrets,
                                    const std::vector<std::string>& env) {
  std::vector<std::string> lost = secrets;
  for (const std::string& each : env)
    if (each.find('=') == std::string::npos) lost.push_back(each);
  if (lost.empty()) return std::nullopt;
  return Error{Errc::unavailable,
               fmt::format("its job does not begin again: {} was in the environment of its "
                           "command, which is gone",
                           join(lost, ", ")),
               {},
               0};
}

CourseDriver::CourseDriver(cloud::Journal& journal, cloud::RentedJob record,
                           CourseMachines& machines, CourseJob& job, CourseSettings settings)
    : journal_(journal),
      record_(std::move(record)),
      machines_(machines),
      job_(job),
      settings_(std::move(settings)),
      course_(course_record(record_), {.brings_back = !settings_.back.empty()}) {}

int CourseDriver::run() {
  for (Step step = course_.first();;) {
    if (step == Step::conclude) conclude();
    if (step == Step::conclude || step == Step::leave || step == Step::quit) return course_.code();
    Seen seen = carry_out(step);
    // An attempt that could not start has no job, even if the journal names one.
    if (step != Step::run || !seen.ok) seen.started = !record_.job.empty();
    // Signals may have come without ending the step.
    while (const int signal = machines_.take_signal())
      note_signal(signal);
    seen.asked_to_end = asked_to_end_;
    seen.asked_to_leave = asked_to_leave_;
    step = course_.next(seen);
  }
}

Seen CourseDriver::carry_out(Step step) {
  switch (step) {
    case Step::check_begin:
      return check_begin();
    case Step::rent:
      return rent();
    case Step::run:
      return run_job();
    case Step::ask_loss:
      return ask_loss();
    case Step::save:
      return save();
    case Step::note_loss:
      note_loss();
      return {};
    case Step::bring_back:
      return bring();
    case Step::hold:
      return hold();
    case Step::note_success:
      note_success();
      return {};
    case Step::note_end:
      note_end();
      return {};
    case Step::terminate:
      return terminate();
    case Step::leave:
    case Step::conclude:
    case Step::quit:
      break;
  }
  return {};
}

Status CourseDriver::note(Stage stage) {
  record_.stage = stage;
  return journal_.note_job(record_);
}

void CourseDriver::note_signal(int signal) {
  if (signal == SIGINT)
    asked_to_end_ = true;
  else if (signal != 0)
    asked_to_leave_ = true;
}

// Returns false once `lockstep down` has dropped the job of a rental in progress.
bool CourseDriver::is_wanted() {
  return journal_.has_job(record_.rental).value_or(true);
}

// Converts a result. Errors were printed where they arose.
Seen CourseDriver::seen(const Status& done) {
  if (done) return {};
  const bool canceled = done.error().code == Errc::canceled;
  if (canceled) note_signal(done.error().sys);
  return {.ok = false, .canceled = canceled, .error_code = code_of_error(done.error())};
}

// Prints the error of a step, and notes it for the end of the job.
Seen CourseDriver::failed(Error why) {
  if (why.code == Errc::canceled && why.sys == 0) why.sys = machines_.take_signal();
  settings_.tell_error(why);
  record_.note = why.message;
  return seen(Failure(std::move(why)));
}

Seen CourseDriver::check_begin() {
  return settings_.cannot_begin ? failed(*settings_.cannot_begin) : Seen{};
}

Seen CourseDriver::rent() {
  const Status done = machines_again();
  machines_.unlock();
  if (done) return {};
  const cloud::Rental& rental = machines_.rental();
  if (rental.closed_ms == 0 && rental.wanted) return failed(done.error());
  Seen seen = this->seen(done);
  seen.unwanted = true;
  return seen;
}

Status CourseDriver::machines_again() {
  LOCKSTEP_TRY(machines_.lock());
  const cloud::Rental& rental = machines_.rental();
  if (rental.closed_ms != 0 || !rental.wanted)
    return fail(Errc::unavailable, fmt::format("'{}' is being terminated", rental.cluster));
  if (record_.stage == Stage::lost) LOCKSTEP_TRY(drop_lost());
  LOCKSTEP_TRY(note(Stage::renting));
  LOCKSTEP_TRY(machines_.rent(
      rental.wish.spot == cloud::SpotWish::prefer && record_.losses >= kLossesToOnDemand,
      wait_left()));
  if (!is_wanted()) return fail(Errc::unavailable, "its job is not wanted any more");
  return note(Stage::working);
}

// New machines are requested only once the old ones are gone.
Status CourseDriver::drop_lost() {
  const cloud::Rental& rental = machines_.rental();
  settings_.tell(fmt::format(
      "'{}' {}; its job goes on elsewhere (attempt {}){}", rental.cluster,
      rental.attempts.back().offer.spot ? "was taken away by its provider" : "has lost a machine",
      record_.losses + 1,
      settings_.rows == 0 ? "" : fmt::format("; all {} rows begin again", settings_.rows)));
  return machines_.drop_lost();
}

// The limit of --wait counts from the job's start, across all processes of the course.
std::optional<std::chrono::milliseconds> CourseDriver::wait_left() const {
  if (!settings_.wait || record_.losses > 0 || record_.began_ms <= 0) return settings_.wait;
  return *settings_.wait - std::chrono::milliseconds(
                               std::max<std::int64_t>(machines_.now_ms() - record_.began_ms, 0));
}

CourseJob::Events CourseDriver::events() {
  return {.recorded =
              [this](const std::string& id) {
                record_.job = id;
                return journal_.note_job(record_);
              },
          // The command shows these jobs to the user who detaches. Without the note they are not
          // shown.
          .started =
              [this](const std::vector<std::string>& ahead) {
                record_.ahead = ahead;
                (void)journal_.note_job(record_);
              }};
}

Result<AttemptEnd> CourseDriver::attempt() {
  if (!record_.job.empty()) {
    LOCKSTEP_TRY_ASSIGN(auto followed, job_.follow(record_.job));
    if (followed) return std::move(*followed);
    record_.job.clear();
  }
  if (settings_.cannot_begin) return Failure(*settings_.cannot_begin);
  if (const Status along = take_along(); !along) {
    settings_.tell_error(along.error());
    return AttemptEnd{.code = 1, .job = {}};
  }
  return job_.begin(record_.losses + 1, events());
}

Seen CourseDriver::run_job() {
  auto ended = attempt();
  if (!ended) return failed(std::move(ended).error());
  ended_ = std::move(*ended);
  // Exit code 2 promises that nothing was rented.
  if (!ended_.why.empty() && ended_.code == 2) ended_.code = 1;
  // The machines are healthy and exist, so other machines would not help.
  if (!ended_.why.empty()) record_.note = "it did not begin: " + ended_.why;
  if (ended_.job.empty()) forget_attempt();
  return {.code = ended_.code,
          .started = !ended_.job.empty(),
          .left = ended_.left,
          .canceled_job = ended_.canceled,
          .gone = ended_.gone};
}

// The book may have the record of the attempt before again, whose machines are gone: viewers must
// not look for this attempt there.
void CourseDriver::forget_attempt() {
  record_.job.clear();
  if (const Status noted = journal_.note_job(record_); !noted)
    settings_.tell(noted.error().message);
}

// Returns whether the machines may have terminated themselves, idle after the job's end, while no
// host could be heard. Starting such a job again would repeat all of its work at the user's
// expense.
bool CourseDriver::may_be_done(const std::optional<cloud::Rental>& now) const {
  const std::chrono::seconds autostop(machines_.rental().terms.autostop_s);
  // Machines that were heard within the idle limit cannot have ended as idle.
  if (!ended_.gone || autostop.count() == 0 || ended_.silent < autostop) return false;
  if (!now) return true;
  const auto& machines = now->attempts.back().machines;
  // A preempted machine did not end by itself, so the job can start again.
  return std::none_of(machines.begin(), machines.end(),
                      [](const cloud::Held& held) { return held.machine.taken; });
}

// Returns whether the machines were preempted, or are about to be.
bool CourseDriver::was_taken() {
  // Rows that have failed by themselves would fail on other machines, too.
  if (ended_.rows_ended) return false;
  const cloud::Rental& rental = machines_.rental();
  const bool spot = rental.attempts.back().offer.spot;
  if (!spot && record_.losses >= kMostLosses) return false;
  if (rental.ends_ms > 0 && machines_.now_ms() >= rental.ends_ms) return false;
  const auto now = machines_.look();
  if (may_be_done(now)) {
    record_.note =
        "its machines have ended while nothing was heard of it: whether it was done is not "
        "known, and it is not begun again";
    settings_.tell(record_.note);
    return false;
  }
  if (now && !cloud::is_whole(*now)) return true;
  if (!spot) return false;
  const auto leases = machines_.leases();
  if (!leases) return false;
  bool silent = false;
  for (const rent::LeaseAnswer& answer : *leases) {
    if (!answer.state.notice.empty()) return true;
    silent = silent || !answer.error.empty();
  }
  if (!silent) return false;
  // A machine did not answer. Ask again: the provider may have noticed the loss by now.
  const auto later = machines_.look();
  return later && !cloud::is_whole(*later);
}

void CourseDriver::note_loss() {
  ++record_.losses;
  record_.job.clear();
  record_.note.clear();
  if (const Status noted = note(Stage::lost); !noted) settings_.tell(noted.error().message);
}

Status CourseDriver::bring_back() {
  if (settings_.back.empty()) return {};
  LOCKSTEP_TRY_ASSIGN(const auto places, machines_.places());
  return job_.bring_outputs(places);
}

// Copies the outputs brought so far to the next machines: the project's files do not include what
// git ignores.
Status CourseDriver::take_along() {
  if (!record_.brought) return {};
  LOCKSTEP_TRY_ASSIGN(const auto places, machines_.places());
  return job_.send_outputs(places);
}

// Returns whether node 0 runs, whose files --back brings. true also if the provider does not
// answer.
bool CourseDriver::first_runs() {
  auto now = machines_.look();
  if (!now) return true;
  const auto live = now->live();
  return std::any_of(live.begin(), live.end(), [](const cloud::Held* held) {
    return held->node == 0 && held->machine.state == cloud::Machine::State::running;
  });
}

// Brings the saved outputs of a job with preempted machines.
Seen CourseDriver::save() {
  const Status brought =
      ended_.gone && !first_runs() ? fail(Errc::unavailable, "its machine is gone") : bring_back();
  record_.brought = record_.brought || (brought && !settings_.back.empty());
  if (!brought)
    settings_.tell("what --back names was not brought back: " + brought.error().message);
  return {.whole = brought.has_value()};
}

Seen CourseDriver::bring() {
  // Another process may have seen the job end, and the machine may be gone since.
  const bool unseen = ended_.gone || ended_.job.empty();
  if (unseen && !first_runs()) {
    missing_ = "its machine was gone before";
    // A note of the loss was told when it was made.
    if (record_.note.empty())
      settings_.tell(record_.note = "its outputs are not here: " + missing_);
    return {.ok = false, .gone = true};
  }
  const Status brought = bring_back();
  missing_ = brought ? "" : brought.error().message;
  record_.note = brought ? "outputs in " + join(settings_.back, ", ")
                         : "its outputs are not here: " + missing_;
  return seen(brought);
}

// Keeps the machines for --hold: outputs that are nowhere else are worth more than the cost.
Seen CourseDriver::hold() {
  const cloud::Rental& rental = machines_.rental();
  const Status held = machines_.hold(rental.terms.hold_s);
  if (!held) {
    settings_.tell(record_.note);
    return seen(held);
  }
  const cloud::Micros cost = cloud::cost_of(cloud::rate_now(rental), rental.terms.hold_s * 1000);
  settings_.tell(fmt::format("outputs are not here: {}; '{}' is held for {}, which costs {} USD",
                             missing_, rental.cluster, time_words(rental.terms.hold_s),
                             cloud::dollars_text(cost)));
  const std::string where =
      record_.client.empty() ? "" : fmt::format("in {} on {}: ", record_.folder, host::hostname());
  settings_.tell(
      fmt::format("{0}lockstep sync {1} --back PATH brings them, lockstep down {1} ends it", where,
                  rental.cluster));
  return {};
}

void CourseDriver::note_success() {
  record_.succeeded = true;
  if (const Status noted = journal_.note_job(record_); !noted)
    settings_.tell(noted.error().message);
}

void CourseDriver::note_end() {
  record_.code = course_.job_code();
  if (const Status noted = note(Stage::ending); !noted) settings_.tell(noted.error().message);
}

Seen CourseDriver::terminate() {
  if (const Status locked = machines_.lock(); !locked)
    return locked.error().code == Errc::canceled ? seen(locked) : failed(locked.error());
  const cloud::Rental& rental = machines_.rental();
  if (rental.closed_ms != 0) {
    settings_.tell(fmt::format("'{}' was terminated by another lockstep", rental.cluster));
    return {.elsewhere = true};
  }
  const Status back = machines_.give_back();
  return back ? Seen{} : failed(back.error());
}

// The record stays until the user was told: by the command that views the job, or the next one.
void CourseDriver::conclude() {
  if (!is_wanted()) return;
  record_.code = course_.code();
  record_.note +=
      fmt::format("{}{}{} USD", record_.note.empty() ? "" : ", ",
                  course_.ended_elsewhere() ? "terminated by another lockstep, " : "",
                  cloud::dollars_text(cloud::cost_so_far(machines_.rental(), machines_.now_ms())));
  if (const Status noted = note(Stage::ended); !noted) settings_.tell(noted.error().message);
}

}  // namespace lockstep::jobs::rented
