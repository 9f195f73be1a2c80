#include "cli/rented_course.h"

#include "base/date_text.h"
#include "base/text.h"
#include "cli/guarded.h"
#include "cli/on_demand.h"
#include "cli/on_demand_words.h"
#include "cli/places.h"
#include "proc/signal_watch.h"
#include "rent/gang.h"
#include "rent/guard.h"
#include "rent/job_claim.h"
#include "rent/market.h"
#include "rent/rented_host.h"

#include <fmt/core.h>

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::cli {
namespace {

// One try a second: `keep` and `down` hold the cluster's lock for a while.
constexpr int kLockTries = 60;
constexpr int kLossesToOnDemand = 3;  // losses of spot machines, then --spot=prefer takes on-demand
// Losses of any kind, after which the loss of an on-demand machine ends the job. On-demand machines
// rarely go by themselves, so the job may be the reason.
constexpr int kMostLosses = 5;

}  // namespace

using Stage = cloud::RentedJob::Stage;
using jobs::rented::Seen;
using jobs::rented::Step;

jobs::rented::CourseRecord record_of(const cloud::RentedJob& job) {
  return {.working = job.stage == Stage::working,
          .ending = job.stage == Stage::ending,
          .started = !job.job.empty(),
          .code = job.code};
}

void RentedCourse::tell(const std::string& text) const {
  tell_line(kRentedRun, text);
}

// Writes into the journal what another process needs to continue from here.
Status RentedCourse::note(Stage stage) {
  job_.stage = stage;
  return world_.journal().note_job(job_);
}

void RentedCourse::note_signal(int signal) {
  if (signal == SIGINT)
    asked_to_end_ = true;
  else if (signal != 0)
    asked_to_leave_ = true;
}

// Takes note of the signals that came during a step and were not returned with its error.
void RentedCourse::look_for_signals() {
  note_signal(world_.signals().take());
  while (const int signal = proc::SignalWatch::take_stop())
    note_signal(signal);
}

// Returns false once `lockstep down` has dropped the job of a rental in progress.
bool RentedCourse::is_wanted() {
  return world_.journal().has_job(rental_.id).value_or(true);
}

// Takes the cluster's lock and reads the rental again. The lock is free while the job runs, so
// `keep` and `down` may have changed the rental.
Status RentedCourse::take_lock() {
  Status locked = world_.locks().take(rental_.cluster);
  for (int tries = 0; !locked && tries < kLockTries; ++tries) {
    LOCKSTEP_TRY(world_.web().pause(std::chrono::seconds(1)));
    locked = world_.locks().take(rental_.cluster);
  }
  LOCKSTEP_TRY(locked);
  auto known = world_.journal().of_cluster(rental_.cluster);
  if (known && known->id == rental_.id)
    rental_ = std::move(*known);
  else if (known || known.error().code == Errc::not_found)
    rental_.closed_ms = world_.web().now_ms();
  return {};
}

// Returns the places of this rental's machines. The name may belong to another rental by now, whose
// machines are not ours.
Result<std::vector<hosts::HostPlace>> RentedCourse::own_places() const {
  const auto known = world_.journal().of_cluster(rental_.cluster);
  if (known ? known->id != rental_.id : known.error().code == Errc::not_found)
    return fail(Errc::unavailable, fmt::format("'{}' was given back", rental_.cluster));
  return places_as_rented(rental_.cluster, {});
}

// Returns whether the machines were preempted, or are about to be.
bool RentedCourse::was_taken() {
  const bool spot = rental_.attempts.back().offer.spot;
  if (!spot && job_.losses >= kMostLosses) return false;
  if (rental_.ends_ms > 0 && world_.web().now_ms() >= rental_.ends_ms) return false;
  if (may_be_done(rental_, ended_)) {
    job_.note =
        "its machines have ended while nothing was heard of it: whether it was done is not "
        "known, and it is not begun again";
    tell(job_.note);
    return false;
  }
  if (machines_gone(rental_)) return true;
  if (!spot) return false;
  const auto places = own_places();
  if (!places) return false;
  const auto leases = rent::ask_leases(*places);
  if (!leases) return false;
  bool silent = false;
  for (const rent::LeaseAnswer& answer : *leases) {
    if (!answer.state.notice.empty()) return true;
    silent = silent || !answer.error.empty();
  }
  // A machine did not answer. Ask again: the provider may have noticed the loss by now.
  return silent && machines_gone(rental_);
}

// Terminates the rest of a lost gang, until the provider reports all machines gone. New ones are
// requested only then.
Status RentedCourse::end_lost() {
  const cloud::Offer lost = rental_.attempts.back().offer;
  tell(fmt::format("'{}' {}; its job goes on elsewhere (attempt {})", rental_.cluster,
                   lost.spot ? "was taken away by its provider" : "has lost a machine",
                   job_.losses + 1));
  const auto told = [&](const cloud::RentEvent& event) { tell(event_text(event)); };
  LOCKSTEP_TRY(rent::drop_machines(world_, rental_, "taken by the provider", told));
  if (!lost.spot) return {};  // the loss says nothing about capacity there
  return world_.journal().learn({.kind = cloud::Block::Kind::capacity,
                                 .provider = lost.provider,
                                 .region = lost.region,
                                 .zone = lost.zone,
                                 .type = lost.type,
                                 .spot = lost.spot,
                                 .until_ms = world_.web().now_ms() + cloud::kCapacityBlockMs,
                                 .why = "took a machine away"});
}

// Takes up machines of an earlier request, or requests others.
Status RentedCourse::machines_again() {
  LOCKSTEP_TRY(take_lock());
  if (rental_.closed_ms != 0 || !rental_.wanted)
    return fail(Errc::unavailable, fmt::format("'{}' is being given back", rental_.cluster));
  if (job_.stage == Stage::lost) LOCKSTEP_TRY(end_lost());
  LOCKSTEP_TRY(note(Stage::renting));
  if (rental_.wish.spot == cloud::SpotWish::prefer && job_.losses >= kLossesToOnDemand)
    rental_.wish.spot = cloud::SpotWish::no;
  if (rental_.settled()) LOCKSTEP_TRY(rent::new_keys(world_, rental_));
  LOCKSTEP_TRY_ASSIGN(const auto wait_s, wait_seconds(options_));
  LOCKSTEP_TRY_ASSIGN(auto market, rent::ask_market(world_, rental_.wish, true));
  cloud::RentRules rules = rules_of(wait_s);
  // The limit of --wait counts from the job's start, across all followers.
  if (rules.wait && job_.losses == 0 && job_.began_ms > 0)
    *rules.wait -=
        std::chrono::milliseconds(std::max<std::int64_t>(world_.web().now_ms() - job_.began_ms, 0));
  LOCKSTEP_TRY(rent::rent_gang(
      world_, rental_, std::move(market), rules,
      [&](const cloud::RentEvent& event) { tell(event_text(event)); },
      [&](const rent::ContactStep& step) { tell(step.text); }));
  if (!is_wanted()) return fail(Errc::unavailable, "its job is not wanted any more");
  return note(Stage::working);
}

// Refuses to start the job if it needs variables from the environment of its command. Another
// process does not have them, or has other values.
Status RentedCourse::may_begin() const {
  if (remote_.cannot_begin) return Failure(*remote_.cannot_begin);
  if (remote_.own_environment) return {};
  std::vector<std::string> lost = remote_.variables.secrets;
  for (const std::string& each : remote_.variables.env)
    if (each.find('=') == std::string::npos) lost.push_back(each);
  if (lost.empty()) return {};
  return fail(Errc::unavailable,
              fmt::format("its job does not begin again: {} was in the environment of its command, "
                          "which is gone",
                          join(lost, ", ")));
}

Result<RemoteOutcome> RentedCourse::attempt() {
  if (!job_.job.empty()) {
    LOCKSTEP_TRY_ASSIGN(const auto followed, follow_started_job(call_, remote_, job_.job));
    if (followed) return *followed;
    job_.job.clear();
  }
  LOCKSTEP_TRY(may_begin());
  if (job_.losses == 0) return run_job_on_hosts(call_, remote_);
  if (const Status along = take_along(); !along) {
    print_error(kRentedRun, along.error());
    return RemoteOutcome{.code = 1, .job = {}};
  }
  Parsed parsed = call_.parsed;
  if (options_.resume_arg) parsed.script_args.push_back(*options_.resume_arg);
  remote_.attempt = job_.losses + 1;
  return run_job_on_hosts({call_.program, call_.words, std::move(parsed)}, remote_);
}

// Converts a result. Errors were printed where they arose.
Seen RentedCourse::seen(const Status& done) {
  Seen seen{.ok = done.has_value()};
  if (done) return seen;
  seen.canceled = done.error().code == Errc::canceled;
  if (seen.canceled) note_signal(done.error().sys);
  seen.error_code = number(code_of(done.error()));
  return seen;
}

Seen RentedCourse::run_job() {
  auto ended = attempt();
  if (!ended) {
    Error why = ended.error();
    if (why.code == Errc::canceled && why.sys == 0) why.sys = world_.signals().take();
    print_error(kRentedRun, why);
    job_.note = why.message;
    return seen(Failure(std::move(why)));
  }
  ended_ = std::move(*ended);
  // Exit code 2 promises that nothing was rented.
  if (!ended_.why.empty() && ended_.code == 2) ended_.code = 1;
  // The machines are healthy and exist, so other machines would not help.
  if (!ended_.why.empty()) job_.note = "it did not begin: " + ended_.why;
  return {.code = ended_.code,
          .started = !ended_.job.empty(),
          .left = ended_.left,
          .canceled_job = ended_.canceled,
          .gone = ended_.gone};
}

Seen RentedCourse::bring() {
  if (ended_.gone && !first_runs()) {
    missing_ = "its machine was gone before";
    // A note of the loss was told when it was made.
    if (job_.note.empty()) tell(job_.note = "its outputs are not here: " + missing_);
    return {.ok = false, .gone = true};
  }
  const Status brought = bring_back();
  missing_ = brought ? "" : brought.error().message;
  job_.note =
      brought ? "outputs in " + join(options_.back, ", ") : "its outputs are not here: " + missing_;
  return seen(brought);
}

Seen RentedCourse::hold() {
  const Status held = hold_machines(missing_);
  if (!held) tell(job_.note);
  return seen(held);
}

Seen RentedCourse::terminate() {
  if (const Status locked = take_lock(); !locked) {
    if (locked.error().code != Errc::canceled) {
      job_.note = locked.error().message;
      print_error(kRentedRun, locked.error());
    }
    return seen(locked);
  }
  if (rental_.closed_ms != 0) {
    tell(fmt::format("'{}' was given back by another lockstep", rental_.cluster));
    return {.elsewhere = true};
  }
  const Status back = give_machines_back(world_, kRentedRun, rental_);
  // The lock is taken again for the next try.
  if (!back && back.error().code == Errc::canceled) world_.locks().release(rental_.cluster);
  if (!back) {
    job_.note = back.error().message;
    print_error(kRentedRun, back.error());
  }
  return seen(back);
}

Seen RentedCourse::carry_out(Step step) {
  switch (step) {
    case Step::check_begin:
    case Step::rent: {
      const Status done = step == Step::rent ? machines_again() : may_begin();
      if (step == Step::rent) world_.locks().release(rental_.cluster);
      Seen seen = this->seen(done);
      seen.unwanted = !done && (rental_.closed_ms != 0 || !rental_.wanted);
      if (done || (step == Step::rent && seen.unwanted)) return seen;
      Error why = done.error();
      if (why.code == Errc::canceled && why.sys == 0) why.sys = world_.signals().take();
      note_signal(why.code == Errc::canceled ? why.sys : 0);
      print_error(kRentedRun, why);
      job_.note = why.message;
      seen.error_code = number(code_of(why));
      return seen;
    }
    case Step::run:
      return run_job();
    case Step::ask_loss:
      return {.taken = was_taken()};
    case Step::save:
      return save();
    case Step::note_loss:
      ++job_.losses;
      job_.job.clear();
      job_.note.clear();
      if (const Status noted = note(Stage::lost); !noted) tell(noted.error().message);
      return {};
    case Step::bring_back:
      return bring();
    case Step::hold:
      return hold();
    case Step::note_end:
      job_.code = course_.job_code();
      if (const Status noted = note(Stage::ending); !noted) tell(noted.error().message);
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

// The record stays until the user was told: by the command that views the job, or the next one.
void RentedCourse::conclude(int code) {
  if (!is_wanted()) return;
  job_.code = code;
  job_.note += fmt::format("{}{}{} USD", job_.note.empty() ? "" : ", ",
                           course_.ended_elsewhere() ? "given back by another lockstep, " : "",
                           cloud::dollars_text(cloud::cost_so_far(rental_, world_.now_ms())));
  if (const Status noted = note(Stage::ended); !noted) tell(noted.error().message);
}

int RentedCourse::run() {
  for (Step step = course_.first();;) {
    if (step == Step::conclude) conclude(course_.code());
    if (step == Step::conclude || step == Step::leave || step == Step::quit) return course_.code();
    Seen seen = carry_out(step);
    // An attempt that could not start has no job, even if the journal names one.
    if (step != Step::run || !seen.ok) seen.started = !job_.job.empty();
    look_for_signals();
    seen.asked_to_end = asked_to_end_;
    seen.asked_to_leave = asked_to_leave_;
    step = course_.next(seen);
  }
}

}  // namespace lockstep::cli
