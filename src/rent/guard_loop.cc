#include "rent/guard_loop.h"

#include "cloud/time_text.h"
#include "hosts/registry.h"
#include "io/own_folders.h"
#include "rent/gang.h"
#include "rent/guard.h"
#include "rent/guard_files.h"
#include "rent/rental_files.h"
#include "rent/rented_cluster.h"

#include <fmt/core.h>

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace lockstep::rent {
namespace {

using cloud::Rental;

// A question to a silent machine takes this long. Rentals with a nearer end are not asked, so the
// end is not late.
constexpr std::int64_t kLongestAskMs = 70'000;
constexpr std::int64_t kNearestLookMs = 200;
// The guard retries later. A provider that refuses to end machines must not delay other rentals.
constexpr std::chrono::minutes kEndPatience{1};

}  // namespace

// Writes one line to the log, unless the last line was the same.
void Guard::say(const std::string& text) {
  if (said_ == text) return;
  said_ = text;
  std::fputs(fmt::format("{} {}\n", cloud::iso_time(now()), text).c_str(), stdout);
  std::fflush(stdout);
}

Result<std::vector<Rental>> Guard::guarded() {
  LOCKSTEP_TRY_ASSIGN(auto rentals, world_->journal().open_rentals());
  std::erase_if(rentals, [](const Rental& one) { return !wants_guard(one); });
  LOCKSTEP_TRY_ASSIGN(jobs_, world_->journal().jobs());
  return rentals;
}

// Starts a follower for a job whose command and follower are both gone.
Status Guard::follow(const Rental& rental) {
  const cloud::RentedJob* job = unended_job(jobs_, rental);
  if (job == nullptr) return {};
  switch (follow_step(*job, rental, job_is_claimed(rental.id), follows_[rental.id], now(), pace_)) {
    case FollowStep::leave:
      return {};
    case FollowStep::give_up:
      return leave_job(*job);
    case FollowStep::start:
      break;
  }
  say(fmt::format("'{}': no process follows its job; starting a follower, which writes {}",
                  rental.cluster, follow_log(rental.cluster)));
  LOCKSTEP_TRY_ASSIGN(proc::Child follower, reach_.follower(rental.id));
  followers_.push_back(std::move(follower));
  return {};
}

// Gives up on a job whose followers keep dying. Its machines are guarded like any others from then
// on.
Status Guard::leave_job(cloud::RentedJob job) {
  // A claimed job is being followed: leave it alone.
  const auto claim = claim_job(job.rental);
  if (!claim) return {};
  const std::string why = fmt::format("{} followers ended before the job did", kMostFollowers);
  cloud::end_unseen(job, why);
  job.stage = cloud::RentedJob::Stage::ended;
  if (!job.succeeded || job.note.empty()) job.note = why;
  say(fmt::format("'{}': {}; the machines are left to their lease", job.cluster, job.note));
  LOCKSTEP_TRY(world_->journal().note_job(job));
  follows_.erase(job.rental);
  return {};
}

// Asks all due machines at the same time, so a silent machine delays no other.
Status Guard::ask_machines(const std::vector<Rental>& rentals) {
  const auto registry = hosts::Registry::open(io::state_folder());
  if (!registry) return {};
  std::vector<hosts::HostPlace> places;
  std::vector<std::string> ids;
  for (const Rental& rental : rentals) {
    const std::int64_t ends = rental.ends_ms;
    if (!rental.wanted || (ends > 0 && ends - now() < kLongestAskMs)) continue;
    // The follower watches these machines, and they terminate themselves in any case.
    if (is_followed(rental) && ends_itself(rental)) continue;
    const auto machines = met_machines(rental);
    const auto all =
        rented_places(rental, registry->pins_file(rental.cluster), user_key_file(rental.cluster));
    if (all.size() != machines.size()) continue;  // first contact is not finished
    for (std::size_t at = 0; at < all.size(); ++at) {
      const std::string& id = machines[at]->machine.id;
      if (is_later(words_[id].ask_ms, pace_.asked_ms) ||
          is_off(words_[id], now(), pace_, rental.told_ms != 0))
        continue;
      places.push_back(all[at]);
      ids.push_back(id);
    }
  }
  if (places.empty()) return {};
  const auto answers = reach_.leases(places);
  if (!answers)
    return answers.error().code == Errc::canceled ? Status(Failure(answers.error())) : Status();
  for (std::size_t at = 0; at < answers->size(); ++at) {
    const LeaseAnswer& answer = (*answers)[at];
    MachineWord& word = words_[ids[at]];
    if (!answer.error.empty() && word.silent_ms == 0) say(answer.error);
    note_word(word, answer.error.empty() ? &answer.state : nullptr, now(), pace_);
  }
  return {};
}

// Asks the provider about silent machines. They may be gone: terminated in the console, or by a
// client that could not tell this guard.
Status Guard::look_after(const Rental& known) {
  const auto machines = met_machines(known);
  Trouble& trouble = troubles_[known.id];
  if (is_later(trouble.look_ms, pace_.asked_ms) ||
      std::none_of(machines.begin(), machines.end(), [&](const cloud::Held* held) {
        return words_[held->machine.id].silent_ms != 0;
      }))
    return {};
  trouble.look_ms = now() + pace_.asked_ms;
  if (!world_->locks().take(known.cluster)) return {};
  auto rental = world_->journal().of_cluster(known.cluster);
  const Status looked = rental && rental->id == known.id ? look(*world_, *rental) : Status();
  world_->locks().release(known.cluster);
  if (!looked) say(fmt::format("'{}': {}", known.cluster, looked.error().message));
  return looked || looked.error().code != Errc::canceled ? Status() : looked;
}

// Terminates machines without a note in the journal: another process holds the rental's lock, and
// only that process may change the record.
Status Guard::end_now(const Rental& rental, const std::vector<std::size_t>& machines) {
  const auto met = met_machines(rental);
  for (const cloud::Attempt& attempt : rental.attempts) {
    std::vector<cloud::Machine> ended;
    for (const cloud::Held& held : attempt.machines) {
      const bool named = std::any_of(machines.begin(), machines.end(), [&](std::size_t at) {
        return met[at]->machine.id == held.machine.id;
      });
      if (held.gone_ms == 0 && (machines.empty() || named)) ended.push_back(held.machine);
    }
    cloud::Provider* provider = world_->providers().find(attempt.offer.provider);
    if (ended.empty() || provider == nullptr || !attempt.open()) continue;
    LOCKSTEP_TRY(provider->keys());
    LOCKSTEP_TRY(provider->end(world_->web(), ended));
  }
  return {};
}

Status Guard::act_locked(Rental& rental, const GuardPlan& plan) {
  say(fmt::format("'{}': {}; ending {}", rental.cluster, plan.why,
                  plan.what == GuardPlan::What::give_back
                      ? "it"
                      : fmt::format("{} of its machines", plan.machines.size())));
  if (plan.what == GuardPlan::What::end_some) {
    LOCKSTEP_TRY(end_now(rental, plan.machines));
    return look(*world_, rental);
  }
  const auto tell = [&](const cloud::RentEvent& event) {
    if (event.kind == cloud::RentEvent::Kind::not_ended)
      say(fmt::format("'{}': {}", rental.cluster, event.text));
  };
  LOCKSTEP_TRY(give_back(*world_, rental, tell, kEndPatience));
  say(fmt::format("'{}' is terminated; it cost {} USD", rental.cluster,
                  cloud::dollars_text(cloud::cost_so_far(rental, world_->now_ms()))));
  return {};
}

Status Guard::act(const Rental& known) {
  GuardPlan plan = guard_plan(known, words_, now(), pace_, is_followed(known));
  if (plan.what == GuardPlan::What::wait) return {};
  if (!world_->locks().take(known.cluster)) {
    if (!plan.forced) return {};
    say(fmt::format("'{}': {}, but the client that holds the lock does not end it", known.cluster,
                    plan.why));
    return end_now(known, {});
  }
  Status done;
  // Plan again under the lock: `lockstep keep` may have extended the rental meanwhile.
  auto rental = world_->journal().of_cluster(known.cluster);
  if (rental && rental->id == known.id) {
    // A job may have started on the rental too.
    if (auto jobs = world_->journal().jobs()) jobs_ = std::move(*jobs);
    plan = guard_plan(*rental, words_, now(), pace_, is_followed(*rental));
    if (plan.what != GuardPlan::What::wait) done = act_locked(*rental, plan);
  } else if (!rental && rental.error().code != Errc::not_found) {
    done = Failure(rental.error());
  }
  world_->locks().release(known.cluster);
  return done;
}

std::int64_t Guard::pause_until(const std::vector<Rental>& rentals) const {
  // Wake at the end of a lease, not a poll later: each minute is billed.
  std::int64_t pause = pace_.poll_ms;
  for (const Rental& rental : rentals)
    if (rental.ends_ms > now()) pause = std::min(pause, rental.ends_ms - now());
  return std::max(pause, std::min(kNearestLookMs, pace_.poll_ms));
}

// Reads the credentials again, since the user may have replaced them. Keeps the old ones if the new
// set lacks a provider: credentials from the environment exist only in this process's memory.
void Guard::read_keys_again() {
  // A new OnDemand reads files and variables of credentials afresh.
  auto again = reach_.open();
  if (again && std::all_of(world_->providers().all().begin(), world_->providers().all().end(),
                           [&](const auto& one) {
                             return !one->keys() ||
                                    (*again)->providers().find(one->traits().name)->keys();
                           }))
    world_ = std::move(*again);
}

Status Guard::run(io::Fd alive) {
  say("guarding the machines rented from here");
  while (true) {
    auto rentals = guarded();
    if (!rentals) say(rentals.error().message);
    if (rentals && rentals->empty()) {
      // Exclude commands in need of a guard between this look at the journal and the exit. Such a
      // command would believe in a running guard.
      if (const auto mine = lock_guard_use(GuardUse::end)) {
        rentals = guarded();
        if (rentals && rentals->empty()) {
          say("nothing is left to guard");
          alive.reset();
          return {};
        }
      }
    }
    const std::vector<Rental> now_open = rentals ? std::move(*rentals) : std::vector<Rental>();
    for (const Rental& rental : now_open) {
      Trouble& trouble = troubles_[rental.id];
      if (is_later(trouble.again_ms, pace_.most_pause_ms)) continue;
      // If no follower can be started, the machines are still terminated on time.
      if (const Status followed = follow(rental); !followed)
        say(fmt::format("'{}': its job: {}", rental.cluster, followed.error().message));
      Status done = act(rental);
      // SIGTERM, for example from a command that replaces this guard by a guard with more
      // credentials.
      if (!done && done.error().code == Errc::canceled) return done;
      if (!done) say(fmt::format("'{}': {}; asked again", rental.cluster, done.error().message));
      if (!done && done.error().code == Errc::denied) read_keys_again();
      trouble.failures = done ? 0 : trouble.failures + 1;
      trouble.again_ms = now() + retry_pause(trouble.failures, pace_);
    }
    // Reap followers that have ended. The guard is their parent and runs for days.
    std::erase_if(followers_, [](proc::Child& one) { return one.reap().has_value(); });
    LOCKSTEP_TRY(ask_machines(now_open));
    for (const Rental& rental : now_open)
      LOCKSTEP_TRY(look_after(rental));
    LOCKSTEP_TRY(world_->web().pause(std::chrono::milliseconds(pause_until(now_open))));
  }
}

GuardPace guard_pace() {
  GuardPace pace;
  const char* text = std::getenv("LOCKSTEP_GUARD_SPEED");
  const std::int64_t speed = text == nullptr ? 1 : std::clamp(std::atoi(text), 1, 1000);
  for (std::int64_t* time : {&pace.poll_ms, &pace.asked_ms, &pace.silent_ms, &pace.nobody_ms,
                             &pace.held_lock_ms, &pace.most_pause_ms})
    *time /= speed;
  return pace;
}

Result<int> guard_rentals() {
  // The guard outlives its terminal.
  signal(SIGHUP, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  LOCKSTEP_TRY_ASSIGN(auto world, OnDemand::open());
  auto alive = take_guard_lock(*world);
  if (!alive && alive.error().code == Errc::already_exists) return 0;
  if (!alive) return Failure(alive.error());
  Guard guard(std::move(world), guard_pace(), {});
  const Status done = guard.run(std::move(*alive));
  if (done || done.error().code == Errc::canceled) return 0;
  return Failure(done.error());
}

}  // namespace lockstep::rent
