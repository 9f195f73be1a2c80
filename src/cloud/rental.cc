#include "cloud/rental.h"

#include "base/text.h"

#include <algorithm>
#include <set>
#include <utility>

namespace lockstep::cloud {
namespace {

template <class Visit>
void each_held(const Rental& rental, Visit visit) {
  for (const Attempt& attempt : rental.attempts)
    for (const Held& held : attempt.machines)
      visit(attempt, held);
}

template <class Good>
bool has_all_nodes(const Rental& rental, Good is_good) {
  std::set<int> nodes;
  for (const Attempt& attempt : rental.attempts)
    for (const Held& held : attempt.machines)
      if (attempt.open() && attempt.state != Attempt::State::ending && held.node != kSurplus &&
          is_good(held.machine))
        nodes.insert(held.node);
  return static_cast<int>(nodes.size()) >= rental.wish.nodes;
}

}  // namespace

std::vector<const Held*> Rental::live() const {
  std::vector<const Held*> found;
  for (const Attempt& attempt : attempts)
    if (attempt.open())
      for (const Held& held : attempt.machines)
        if (held.gone_ms == 0) found.push_back(&held);
  return found;
}

bool Rental::settled() const {
  return std::none_of(attempts.begin(), attempts.end(),
                      [](const Attempt& attempt) { return attempt.open(); });
}

// An unanswered launch may have made all of its machines. Count them at the offer's price until the
// answer is known.
Micros cost_so_far(const Rental& rental, std::int64_t now_ms) {
  Micros sum = 0;
  for (const Attempt& attempt : rental.attempts)
    if (attempt.unanswered())
      sum += attempt.count * cost_of(attempt.per_hour,
                                     std::max(now_ms - attempt.asked_ms, attempt.minimum_s * 1000));
  each_held(rental, [&](const Attempt& attempt, const Held& held) {
    if (attempt.unanswered()) return;
    const std::int64_t until = held.gone_ms == 0 ? now_ms : held.gone_ms;
    // Providers bill a minimum for each machine, even if it ends within seconds.
    sum += cost_of(attempt.per_hour, std::max(until - held.since_ms, attempt.minimum_s * 1000));
  });
  return sum;
}

Micros rate_now(const Rental& rental) {
  Micros sum = 0;
  for (const Attempt& attempt : rental.attempts)
    if (attempt.unanswered()) sum += attempt.count * attempt.per_hour;
  each_held(rental, [&](const Attempt& attempt, const Held& held) {
    if (held.gone_ms == 0 && attempt.open() && !attempt.unanswered()) sum += attempt.per_hour;
  });
  return sum;
}

bool is_whole(const Rental& rental) {
  return has_all_nodes(rental, [](const Machine& machine) {
    return machine.state == Machine::State::running && !machine.address.empty();
  });
}

bool is_lost(const Rental& rental) {
  return !has_all_nodes(rental, [](const Machine& machine) { return !never_runs(machine); });
}

bool never_runs(const Machine& machine) {
  return machine.state == Machine::State::gone || machine.state == Machine::State::ending ||
         machine.state == Machine::State::stopped || machine.state == Machine::State::unhealthy;
}

bool holds(const Rental& rental, const std::string& id) {
  for (const Attempt& attempt : rental.attempts)
    for (const Held& held : attempt.machines)
      if (held.machine.id == id) return true;
  return false;
}

bool has_unanswered(const Rental& rental) {
  return std::any_of(rental.attempts.begin(), rental.attempts.end(),
                     [](const Attempt& attempt) { return attempt.unanswered(); });
}

std::int64_t began_ms(const Rental& rental, std::int64_t now_ms) {
  each_held(rental, [&](const Attempt& /*attempt*/, const Held& held) {
    now_ms = std::min(now_ms, held.since_ms);
  });
  return now_ms;
}

std::int64_t fixed_end_ms(const Rental& rental,
                          const std::function<bool(std::string_view provider)>& fixed) {
  std::int64_t first = 0;
  each_held(rental, [&](const Attempt& attempt, const Held& held) {
    const std::int64_t end = held.machine.ends_ms;
    if (held.gone_ms != 0 || !attempt.open() || end <= 0 || !fixed(attempt.offer.provider)) return;
    first = first == 0 ? end : std::min(first, end);
  });
  return first;
}

std::string Terms::allowed(Ending ending) const {
  // Name both networks even if they are equal now. The second network tells a provider that the
  // rules are for a guard, too.
  const bool guarded = ending == Ending::with_guard && !guard_from.empty();
  return guarded ? allow_from + "," + guard_from : allow_from;
}

std::string allowed_by(const std::vector<Rental>& rentals, std::string_view provider,
                       std::string_view region, Ending ending) {
  std::vector<std::string> all;
  for (const Rental& rental : rentals)
    if (std::any_of(rental.attempts.begin(), rental.attempts.end(),
                    [&](const Attempt& attempt) {
                      return attempt.open() && attempt.offer.provider == provider &&
                             (region.empty() || attempt.offer.region == region);
                    }) ||
        (rental.wanted && rental.settled()))  // a launch may begin there just now
      for (std::string& cidr : split(rental.terms.allowed(ending), ','))
        if (std::find(all.begin(), all.end(), cidr) == all.end()) all.push_back(std::move(cidr));
  return join(all, ",");
}

std::optional<std::int64_t> lease_end(const Terms& terms, Micros per_hour, Micros spent,
                                      std::int64_t began_ms, std::int64_t now_ms) {
  std::optional<std::int64_t> end;
  if (terms.lifetime_s > 0) end = began_ms + terms.lifetime_s * 1000;
  if (terms.budget && per_hour > 0) {
    const Micros left = std::max<Micros>(*terms.budget - spent, 0);
    // Use two steps, since budget x milliseconds per hour may overflow.
    const std::int64_t ms =
        left / per_hour * kMsPerHour +
        static_cast<std::int64_t>(static_cast<double>(left % per_hour) /
                                  static_cast<double>(per_hour) * static_cast<double>(kMsPerHour));
    end = std::min(end.value_or(now_ms + ms), now_ms + ms);
  }
  return end;
}

}  // namespace lockstep::cloud
