#include "cli/rented_course.h"

#include "base/date_text.h"
#include "base/text.h"
#include "cli/guarded.h"
#include "cli/on_demand.h"
#include "cli/on_demand_words.h"
#include "cli/places.h"
#include "proc/signal_watch.h"
#include "rent/guard.h"
#include "rent/job_claim.h"
#include "rent/rented_host.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace lockstep::cli {
namespace {

constexpr int kLockTries = 60;
constexpr int kLossesToOnDemand = 3;  // of spot, until --spot=prefer has had enough
// Of all, until one on demand that goes ends the job: they stay where the job is not the reason.
constexpr int kMostLosses = 5;

// Exit code 2 promises that nothing was rented.
int code_after_renting(int code) {
  return code == 2 ? 1 : code;
}

}  // namespace

using Stage = cloud::RentedJob::Stage;

void RentedCourse::tell(const std::string& text) const {
  tell_line(kRentedRun, text);
}

// What somebody needs to go on from here.
Status RentedCourse::note(Stage stage) {
  job_.stage = stage;
  return world_.journal().note_job(job_);
}

// A follower that is asked to end leaves all as it is: another one goes on.
bool RentedCourse::to_leave() const {
  return remote_.follows && proc::SignalWatch::stops() != stops_;
}

// `lockstep down` drops the job of what is just being rented.
bool RentedCourse::is_wanted() {
  return world_.journal().has_job(rental_.id).value_or(true);
}

// While the job runs nobody has the cluster's lock, so that `keep` and `down` work from elsewhere:
// what they have changed is read again.
Status RentedCourse::take_lock() {
  Status locked = world_.lock(rental_.cluster);
  for (int tries = 0; !locked && tries < kLockTries; ++tries) {
    LOCKSTEP_TRY(world_.web().pause(std::chrono::seconds(1)));
    locked = world_.lock(rental_.cluster);
  }
  LOCKSTEP_TRY(locked);
  auto known = world_.journal().of_cluster(rental_.cluster);
  if (known && known->id == rental_.id)
    rental_ = std::move(*known);
  else if (known || known.error().code == Errc::not_found)
    rental_.closed_ms = world_.web().now_ms();
  return {};
}

// Its name may be another rental's by now, whose machines are none of ours.
Result<std::vector<hosts::HostPlace>> RentedCourse::own_places() const {
  const auto known = world_.journal().of_cluster(rental_.cluster);
  if (known ? known->id != rental_.id : known.error().code == Errc::not_found)
    return fail(Errc::unavailable, fmt::format("'{}' was given back", rental_.cluster));
  return places_as_rented(rental_.cluster, {});
}

// Whether the machines were taken away, or are about to be.
bool RentedCourse::was_taken(const RemoteOutcome& ended) {
  const bool spot = rental_.attempts.back().offer.spot;
  if (!spot && job_.losses >= kMostLosses) return false;
  if (rental_.ends_ms > 0 && world_.web().now_ms() >= rental_.ends_ms) return false;
  if (may_be_done(rental_, ended)) {
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
  // Until that was clear its provider may have noticed, too.
  return silent && machines_gone(rental_);
}

// What is left of machines that were taken: seen gone before new ones are asked for.
Status RentedCourse::end_lost() {
  const cloud::Offer lost = rental_.attempts.back().offer;
  tell(fmt::format("'{}' {}; its job goes on elsewhere (attempt {})", rental_.cluster,
                   lost.spot ? "was taken away by its provider" : "has lost a machine",
                   job_.losses + 1));
  const auto told = [&](const cloud::RentEvent& event) { tell(event_text(event)); };
  LOCKSTEP_TRY(world_.drop_machines(rental_, "taken by the provider", told));
  if (!lost.spot) return {};  // says nothing of the room there
  return world_.journal().learn({.kind = cloud::Block::Kind::capacity,
                                 .provider = lost.provider,
                                 .region = lost.region,
                                 .zone = lost.zone,
                                 .type = lost.type,
                                 .spot = lost.spot,
                                 .until_ms = world_.web().now_ms() + cloud::kCapacityBlockMs,
                                 .why = "took a machine away"});
}

// Takes up what was asked for already, else asks for others.
Status RentedCourse::machines_again() {
  LOCKSTEP_TRY(take_lock());
  if (rental_.closed_ms != 0 || !rental_.wanted)
    return fail(Errc::unavailable, fmt::format("'{}' is being given back", rental_.cluster));
  // Its watcher may have ended it meanwhile; one that is silent is not known not to have.
  LOCKSTEP_TRY(name_to_watcher(world_, job_));
  if (job_.stage == Stage::lost) LOCKSTEP_TRY(end_lost());
  LOCKSTEP_TRY(note(Stage::renting));
  if (rental_.wish.spot == cloud::SpotWish::prefer && job_.losses >= kLossesToOnDemand)
    rental_.wish.spot = cloud::SpotWish::no;
  if (rental_.settled()) LOCKSTEP_TRY(world_.new_keys(rental_));
  LOCKSTEP_TRY_ASSIGN(const auto wait_s, wait_seconds(options_));
  LOCKSTEP_TRY_ASSIGN(auto market, world_.ask(rental_.wish, true));
  cloud::RentRules rules = rules_of(wait_s);
  // However many followers wait one after another.
  if (rules.wait && job_.losses == 0 && job_.began_ms > 0)
    *rules.wait -=
        std::chrono::milliseconds(std::max<std::int64_t>(world_.web().now_ms() - job_.began_ms, 0));
  LOCKSTEP_TRY(world_.rent(
      rental_, std::move(market), rules,
      [&](const cloud::RentEvent& event) { tell(event_text(event)); },
      [&](const std::string& line) { tell(line); }));
  if (!is_wanted()) return fail(Errc::unavailable, "its job is not wanted any more");
  return note(Stage::working);
}

// What was to come from the environment of its command is in no other's, or is another value there.
Status RentedCourse::may_begin() const {
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
  brought_ = false;
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

// The job goes on without us. Where a follower waits, it is not left alone.
int RentedCourse::leave(const RemoteOutcome& ended) {
  left_ = true;
  if (remote_.follows) return ended.code;
  const bool watched = !job_.watcher.empty();
  const bool followed = watched || rent::wants_guard(rental_);
  if (!followed) conclude(ended.code);
  if (!followed && ended_by(world_, rental_) == EndedBy::nobody) {
    tell(
        fmt::format("'{0}' goes on: {1} USD an hour; nobody ends its bill but you, with lockstep "
                    "down {0}",
                    rental_.cluster, cloud::dollars_text(cloud::rate_now(rental_))));
    return ended.code;
  }
  const std::string idle =
      rental_.terms.autostop_s > 0
          ? fmt::format("when it is idle for {}, or ", time_words(rental_.terms.autostop_s))
          : std::string();
  tell(fmt::format("'{}' goes on: {} USD an hour; it ends {}{}{}", rental_.cluster,
                   cloud::dollars_text(cloud::rate_now(rental_)),
                   watched    ? fmt::format("with its job, which {} watches, or ", job_.watcher)
                   : followed ? "with its job, which is followed from here, or "
                              : idle,
                   date_text(certain_end_ms(world_, rental_)),
                   watched    ? "; the next command fetches its outputs"
                   : followed ? "; " + rent::follow_log(rental_.cluster)
                              : ""));
  return ended.code;
}

// Where its machine is gone its watcher may have the outputs, and know how it ended.
int RentedCourse::finish(RemoteOutcome ended) {
  if (ended.left) return leave(ended);
  if (ended.job.empty() || options_.back.empty()) return give_back(ended);
  const bool gone = ended.gone && !first_runs();
  const Status brought =
      gone ? fail(Errc::unavailable, "its machine was gone before") : bring_back();
  brought_ = brought.has_value();
  if (!brought_) {
    const bool told = gone && !job_.note.empty();  // that it is not known how it ended
    if (!told) job_.note = "its outputs are not here: " + brought.error().message;
    if (!gone && to_leave()) return leave(ended);
    if (!gone && hold(brought.error().message)) return ended.code == 0 ? 1 : ended.code;
    if (!gone && to_leave()) return leave(ended);
    const auto saved = fetch_saved(world_, kRentedRun, job_);
    brought_ = saved.has_value();
    const bool whole = saved && saved->whole;
    if (!whole && !told) tell(job_.note);
    if (saved && saved->ended && ended.gone)
      ended.code = saved->code;
    else if (!whole && ended.code == 0)
      ended.code = 1;
    if (!whole) return give_back(ended);
  }
  job_.note = "outputs in " + join(options_.back, ", ");
  return give_back(ended);
}

// How it ended is on disk before the first machine is, whoever goes on from there.
int RentedCourse::give_back(const RemoteOutcome& ended) {
  const auto fails = [&](const Error& error) {
    job_.note = error.message;
    print_error(kRentedRun, error);
    return ended.code == 0 ? 1 : ended.code;
  };
  job_.code = ended.code;
  if (const Status noted = note(Stage::ending); !noted) tell(noted.error().message);
  if (const Status locked = take_lock(); !locked) {
    if (remote_.follows && locked.error().code == Errc::canceled) return leave(ended);
    return fails(locked.error());
  }
  elsewhere_ = rental_.closed_ms != 0;
  if (elsewhere_) {
    tell(fmt::format("'{}' was given back by another lockstep", rental_.cluster));
    return ended.code;
  }
  const Status back = give_machines_back(world_, kRentedRun, rental_);
  return back ? ended.code : fails(back.error());
}

// A follower that is asked to end leaves all as it is, as does one that can't see what has become
// of a job that was started: another one goes on.
int RentedCourse::stop_with(const Error& error) {
  Error why = error;
  if (why.code == Errc::canceled && why.sys == 0) why.sys = world_.take_signal();
  print_error(kRentedRun, why);
  left_ = remote_.follows && (why.code == Errc::canceled || !job_.job.empty());
  job_.note = why.message;
  if (!left_) (void)finish({.code = 1, .job = job_.job});
  return code_after_renting(exit_code_of(why));
}

int RentedCourse::course() {
  stops_ = proc::SignalWatch::stops();
  const auto stopped = [this] { return proc::SignalWatch::stops() != stops_; };
  if (job_.stage == Stage::ending) return give_back({.code = job_.code, .job = job_.job});
  int code = 1;  // of the last attempt
  while (true) {
    if (job_.stage != Stage::working) {
      if (const Status may = may_begin(); !may) return stop_with(may.error());
      const Status again = machines_again();
      world_.unlock(rental_.cluster);
      // Given back meanwhile: nobody wants others.
      if (!again && (rental_.closed_ms != 0 || !rental_.wanted))
        return finish({.code = code, .job = {}});
      if (!again) return stop_with(again.error());
    }
    auto ended = attempt();
    if (!ended) return stop_with(ended.error());
    if (!ended->why.empty()) ended->code = code_after_renting(ended->code);
    code = ended->code;
    if (to_leave()) return leave(*ended);
    if (const auto other =
            ended->left ? std::nullopt : ended_by_watcher(world_, kRentedRun, job_)) {
      left_ = true;
      return *other;
    }
    if (ended->left || code == 0 || ended->canceled || stopped() || !was_taken(*ended)) {
      // On machines that were found good, and are there: others would not do better.
      if (!ended->why.empty()) job_.note = "it did not begin: " + ended->why;
      return finish(*ended);
    }
    if (!ended->job.empty() && save(*ended)) {
      job_.note = "outputs in " + join(options_.back, ", ");
      return give_back({.code = 0, .job = ended->job});
    }
    if (to_leave()) return leave(*ended);
    if (stopped()) return finish({.code = code, .job = {}});
    ++job_.losses;
    job_.job.clear();
    if (const Status noted = note(Stage::lost); !noted) tell(noted.error().message);
  }
}

// Who began it has seen how it ended; else the user is told by his next command.
void RentedCourse::conclude(int code) {
  if (!job_.watcher.empty()) return end_watched(world_, kRentedRun, job_, brought_);
  Status noted;
  if (remote_.follows && is_wanted()) {
    job_.code = code;
    job_.note += fmt::format("{}{}{} USD", job_.note.empty() ? "" : ", ",
                             elsewhere_ ? "given back by another lockstep, " : "",
                             cloud::dollars_text(world_.cost(rental_)));
    noted = note(Stage::ended);
  } else {
    noted = world_.journal().drop_job(rental_.id);
  }
  if (!noted) tell(noted.error().message);
}

int RentedCourse::run() {
  const int code = course();
  if (!left_) conclude(code);
  return code;
}

}  // namespace lockstep::cli
