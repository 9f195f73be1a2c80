#include "rent/guard_plan.h"

#include <algorithm>

namespace lockstep::rent {
namespace {

using cloud::Attempt;
using cloud::Held;
using cloud::Machine;
using cloud::Rental;
using Phase = machine::LeaseState::Phase;

// Returns when the newest machines that no client has met were asked for; 0: there are none. A
// guard on another host counts from its last news: the client is still at work.
std::int64_t unmet_since(const Rental& rental) {
  std::int64_t since = 0;
  for (const Attempt& attempt : rental.attempts) {
    if (!attempt.open()) continue;
    const bool met = attempt.state == Attempt::State::running &&
                     std::all_of(attempt.machines.begin(), attempt.machines.end(),
                                 [](const Held& held) { return !held.host_key.empty(); });
    if (!met) since = std::max(since, attempt.asked_ms);
  }
  return since == 0 ? 0 : std::max(since, rental.told_ms);
}

GuardPlan all_of_it(std::string why, bool forced = false) {
  return {.what = GuardPlan::What::give_back, .why = std::move(why), .forced = forced};
}

}  // namespace

std::vector<const Held*> met_machines(const Rental& rental) {
  std::vector<const Held*> found;
  for (const Attempt& attempt : rental.attempts)
    for (const Held& held : attempt.machines)
      if (attempt.state == Attempt::State::running && held.gone_ms == 0 && !held.host_key.empty())
        found.push_back(&held);
  std::stable_sort(found.begin(), found.end(),
                   [](const Held* a, const Held* b) { return a->node < b->node; });
  return found;
}

bool is_off(const MachineWord& word, std::int64_t now_ms, const GuardPace& pace, bool elsewhere) {
  // A machine that never answered may only be out of reach from here.
  if (word.said_ms == 0) return false;
  if (word.state.phase == Phase::ending) return true;
  if (word.state.phase == Phase::stopping_jobs)
    return word.silent_ms != 0 && now_ms - word.said_ms >= pace.silent_ms;
  // An idle machine reaches its idle limit after `left`. Nobody but this machine's user can have
  // given it work since its last answer.
  if (word.state.idle_ms == 0 || word.state.idle_limit_ms == 0) return false;
  const std::int64_t left =
      std::max(word.state.idle_limit_ms - word.state.idle_ms, word.state.held_ms);
  if (elsewhere && left > pace.asked_ms) return false;
  return now_ms - word.said_ms >= left + pace.silent_ms;
}

bool ends_itself(const Rental& rental) {
  return std::none_of(rental.attempts.begin(), rental.attempts.end(), [](const Attempt& attempt) {
    return attempt.open() && attempt.offer.ending == cloud::Ending::with_guard;
  });
}

GuardPlan guard_plan(const Rental& rental, const MachineWords& words, std::int64_t now_ms,
                     const GuardPace& pace, bool followed) {
  if (rental.closed_ms != 0) return {};
  const bool late = rental.ends_ms > 0 && now_ms >= rental.ends_ms + pace.held_lock_ms;
  if (!rental.wanted) {
    const std::int64_t told = now_ms - rental.told_ms;
    // The client that gave up the rental is terminating the machines: let it finish.
    if (told >= 0 && told < pace.held_lock_ms) return {};
    // The client that should terminate the machines may hang while holding the lock.
    return all_of_it("no longer wanted", late);
  }
  // `late` forces the end: a client may hold the lock for a while, but not past the lease.
  if (rental.ends_ms > 0 && now_ms >= rental.ends_ms) return all_of_it("its lease is over", late);
  if (!followed && rental.settled() && now_ms - rental.created_ms >= pace.silent_ms)
    return all_of_it("nothing of it is left");
  if (const std::int64_t since = unmet_since(rental); since != 0) {
    if (now_ms - since >= pace.nobody_ms) return all_of_it("no client reached its machines");
    return {};
  }
  if (followed && ends_itself(rental)) return {};
  const auto machines = met_machines(rental);
  GuardPlan plan;
  for (std::size_t at = 0; at < machines.size(); ++at) {
    const auto word = words.find(machines[at]->machine.id);
    if (word == words.end() || !is_off(word->second, now_ms, pace, rental.told_ms != 0)) continue;
    plan.machines.push_back(at);
    if (plan.why.empty())
      plan.why = word->second.state.why.empty() ? "idle, or powered off" : word->second.state.why;
  }
  if (plan.machines.empty()) return {};
  if (plan.machines.size() == machines.size()) return all_of_it(std::move(plan.why));
  plan.what = GuardPlan::What::end_some;
  return plan;
}

void note_word(MachineWord& word, const machine::LeaseState* said, std::int64_t now_ms,
               const GuardPace& pace) {
  std::int64_t next = pace.asked_ms / 2;
  if (said != nullptr) {
    word.state = *said;
    word.said_ms = now_ms;
    word.silent_ms = 0;
    next = pace.asked_ms;
    // Ask more often towards the idle limit: the last answer before the end decides whether a
    // silent machine is off.
    if (said->idle_limit_ms > 0)
      next = std::clamp((said->idle_limit_ms - said->idle_ms) / 2, pace.poll_ms, next);
  } else if (word.silent_ms == 0) {
    word.silent_ms = now_ms;
  }
  word.ask_ms = now_ms + next;
}

std::int64_t retry_pause(int failures, const GuardPace& pace) {
  if (failures <= 0) return 0;
  return std::min(pace.poll_ms << std::min(failures - 1, 10), pace.most_pause_ms);
}

}  // namespace lockstep::rent
